"""Debian's chromium, headless, driven by Playwright; without either the tests skip and say so."""

import shutil
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import residua
from residua.views.page.html import write_report

# A root user needs no sandbox, a machine without a graphics card draws WebGL in software, and a browser at rest
# should ask the network for nothing of its own.
FLAGS = [
    "--no-sandbox",
    "--no-first-run",
    "--disable-quic",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
]
DRAWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
HOSTILE = "<script>window.hacked=1</script>"


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        browser.close()


class Opened:
    """A page, and all that went wrong on it."""

    def __init__(self, browser, path: Path, **options):
        self.context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}} | options)
        self.page = self.context.new_page()
        self.wrong, self.asked = [], []
        self.page.on("console", lambda said: self.wrong.append(said.text) if said.type in ("error", "warning") else 0)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.wrong.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri(), wait_until="commit")
        self.page.locator("html[data-ready=true]").wait_for(state="attached", timeout=60_000)
        self.drawn()

    def drawn(self):
        self.page.evaluate(DRAWN)

    def picture(self):
        self.drawn()
        return self.page.locator("#figure-map").screenshot()

    def place(self, node):
        """Where a node of the map is, in pixels of the window."""
        box = self.page.locator("#figure-map").bounding_box()
        x, y = self.page.evaluate(
            """(node) => {
              const plot = Bokeh.documents[0].roots()[0];
              const { data } = plot.renderers.find((r) => r.name === "nodes").data_source;
              const i = data.node.indexOf(node);
              const share = (range, value) => (value - range.start) / (range.end - range.start);
              return [share(plot.x_range, data.x[i]), 1 - share(plot.y_range, data.y[i])];
            }""",
            node,
        )
        return box["x"] + x * box["width"], box["y"] + y * box["height"]

    def point_at(self, node):
        """What a hover says of a node, by its labels."""
        self.page.locator("#figure-map").scroll_into_view_if_needed()
        return self.hover(*self.place(node))

    def hover(self, x, y):
        self.page.mouse.move(x - 3, y)
        self.page.mouse.move(x, y)
        self.page.locator(".tip").wait_for(state="visible")
        labels = self.page.locator(".tip dt").all_inner_texts()
        return dict(zip(labels, self.page.locator(".tip dd").all_inner_texts(), strict=True))

    def until(self, expression, argument=None, seconds=20):
        """Wait for a function in the page: its content policy lets no text be run as code, so we ask from outside."""
        begin = time.monotonic()
        while not self.page.evaluate(expression, argument):
            assert time.monotonic() - begin < seconds, f"{expression} stays false"
            self.drawn()

    def close(self):
        self.context.close()


@pytest.fixture
def opened(browser):
    """Open a report: ``opened(path, **options of the browser's context)``."""
    pages = []

    def open_page(path, **options):
        pages.append(Opened(browser, path, **options))
        return pages[-1]

    yield open_page
    for page in pages:
        page.close()


@pytest.fixture(scope="session")
def counties(tmp_path_factory):
    """A map with names on it, and the model behind it."""
    data = residua.datasets.load_elect80()
    y = np.where(np.random.default_rng(0).random(len(data.y)) < 0.6, data.y, np.nan)
    model = residua.GraphRegressor("linear").fit(data.X, y, graph=data.graph)
    path = tmp_path_factory.mktemp("report") / "counties.html"
    names = data.nodes.assign(name=[f"County {fips}" for fips in data.graph.nodes])
    write_report(model, path, target="turnout", nodes=names)
    return path, model


@pytest.fixture(scope="session")
def hostile(tmp_path_factory):
    """Ids, names, edge types, columns and titles that would like to be scripts."""
    n = 40
    ids = [f"{HOSTILE}{i}" for i in range(n)]
    types = ['"><img src=x onerror="window.hacked=2">', "$$x^2$$ </script>"]
    graph = residua.Graph.from_edges(ids[:-1], ids[1:], type=[types[i % 2] for i in range(n - 1)], nodes=ids)
    rng = np.random.default_rng(0)
    X = pd.DataFrame({f"q\"'</script>{HOSTILE}": rng.normal(size=n)})
    y = np.cumsum(rng.normal(size=n))
    y[::4] = np.nan
    nodes = pd.DataFrame(
        {
            "n\"'</script><img src=x onerror=window.hacked=3>": [f"</script>{HOSTILE}"] * n,
            "$$ @text0{safe}": ["@base{safe}<img src=x onerror=window.hacked=4>"] * n,
        }
    )
    model = residua.GraphRegressor("linear").fit(X, y, graph=graph)
    path = tmp_path_factory.mktemp("report") / "hostile.html"
    write_report(model, path, title=HOSTILE, target=f"</title>{HOSTILE}", nodes=nodes)
    return path
