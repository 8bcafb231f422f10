"use strict";
// Joins the page and Bokeh's pictures: layers, zoom, a chosen node, the table. Text from data only ever becomes
// textContent.
(async () => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const show = (value) =>
    typeof value !== "number" ? String(value) : Number.isFinite(value) ? String(+value.toPrecision(4)) : "\u2013";

  const mouse = matchMedia("(pointer: fine)").matches;
  const views = {};
  async function draw(name) {
    const [view] = [...(await Bokeh.embed.embed_item(data.figures[name]))];
    views[name] = view;
    // A finger scrolls the page; a mouse may drag a picture.
    const pan = view.model.toolbar.tools.find((tool) => tool.type === "PanTool");
    if (pan) pan.active = mouse;
    return view.model;
  }
  // The map first: it is what the reader waits for.
  const plot = await draw("map");
  const find = (name) => plot.renderers.find((renderer) => renderer.name === name);
  const marks = ["nodes", "areas"].map(find).filter(Boolean);
  const column = (renderer, field) => renderer.data_source.data[field];

  // Layers. Nodes without a value are smaller, so that those with one stand out.
  const whole = marks.map((r) => column(r, "radius"));
  const smaller = marks.map(() => false);
  function setLayer(index) {
    const layer = data.layers[index];
    marks.forEach((renderer, k) => {
      const values = column(renderer, layer.field);
      for (const glyph of [renderer.glyph, renderer.selection_glyph]) {
        const mapper = glyph.fill_color.transform;
        mapper.setv({ palette: layer.palette, low: layer.low, high: layer.high });
        glyph.fill_color = { field: layer.field, transform: mapper };
      }
      const some = values.some(Number.isNaN);
      if (whole[k] && (some || smaller[k])) {
        smaller[k] = some;
        renderer.data_source.data = {
          ...renderer.data_source.data,
          radius: whole[k].map((r, i) => (Number.isFinite(values[i]) ? r : 0.7 * r)),
        };
      }
    });
    for (const button of all("[data-layer]")) button.setAttribute("aria-pressed", String(+button.dataset.layer === index));
    for (const legend of all("[data-legend]")) legend.hidden = +legend.dataset.legend !== index;
    document.documentElement.dataset.layer = layer.field;
  }
  for (const button of all("[data-layer]")) button.addEventListener("click", () => setLayer(+button.dataset.layer));

  // Edges.
  for (const box of all("[data-edges]")) {
    const line = find(`edges-${box.dataset.edges}`);
    line.visible = box.checked;
    box.addEventListener("change", () => (line.visible = box.checked));
  }

  // Zoom.
  const full = [plot.x_range, plot.y_range].map(({ start, end }) => ({ start, end }));
  function view(factor, centre) {
    [plot.x_range, plot.y_range].forEach((range, k) => {
      const { start, end } = factor ? range : full[k];
      const middle = centre ? centre[k] : (start + end) / 2;
      const half = ((end - start) / 2) * (factor || 1);
      range.setv({ start: middle - half, end: middle + half });
    });
  }
  for (const button of all("[data-zoom]")) button.addEventListener("click", () => view(+button.dataset.zoom));

  // Paper: a canvas keeps the size it has on the screen, so each is printed as a picture of itself.
  addEventListener("beforeprint", () => {
    for (const [name, view] of Object.entries(views)) {
      const picture = Object.assign(new Image(), { className: "paper", src: view.export("png", true).canvas.toDataURL() });
      const figure = document.getElementById(`figure-${name}`);
      figure.classList.add("drawn");
      figure.append(picture);
    }
  });
  addEventListener("afterprint", () => all("img.paper").forEach((picture) => picture.remove()));

  // One chosen node: from the map, from a cloud, from the table, or by its name.
  const panel = document.getElementById("node");
  function describe(renderer, i) {
    panel.replaceChildren(
      ...data.rows.map(([field, label]) => {
        const row = document.createElement("div");
        row.append(document.createElement("dt"), document.createElement("dd"));
        row.firstChild.textContent = label;
        row.lastChild.textContent = show(column(renderer, field)[i]);
        return row;
      }),
    );
  }
  function choose(node, { move = false } = {}) {
    for (const renderer of marks) {
      const i = column(renderer, "node").indexOf(node);
      renderer.data_source.selected.indices = i < 0 ? [] : [i];
      if (i < 0) continue;
      describe(renderer, i);
      const place = ["x", "y"].map((axis) => [column(renderer, axis)[i]].flat(9));
      if (move) view(1, place.map((values) => (Math.min(...values) + Math.max(...values)) / 2));
    }
    for (const row of all("tr[data-node]")) row.classList.toggle("chosen", +row.dataset.node === node);
  }
  const onChosen = (renderer) =>
    renderer.data_source.selected.properties.indices.change.connect(() => {
      const [i] = renderer.data_source.selected.indices;
      if (i !== undefined && panel.dataset.node !== String(column(renderer, "node")[i])) {
        panel.dataset.node = String(column(renderer, "node")[i]);
        choose(column(renderer, "node")[i]);
      }
    });
  marks.forEach(onChosen);
  document.getElementById("find").addEventListener("change", ({ target }) => {
    const asked = target.value.trim().toLowerCase();
    if (!asked) return;
    const fields = data.rows.map(([field]) => field).filter((field) => field.startsWith("text"));
    for (const test of [(text) => text === asked, (text) => text.startsWith(asked), (text) => text.includes(asked)]) {
      for (const renderer of marks) {
        for (const field of fields) {
          const i = column(renderer, field).findIndex((text) => test(String(text).toLowerCase()));
          if (i >= 0) return choose(column(renderer, "node")[i], { move: true });
        }
      }
    }
    panel.replaceChildren(Object.assign(document.createElement("div"), { className: "hint", textContent: "No node is called so." }));
  });

  // The table.
  const table = document.getElementById("corrections");
  if (table) {
    const heads = [...table.tHead.rows[0].cells];
    const body = table.tBodies[0];
    const key = (row, k) => row.cells[k].dataset.value ?? row.cells[k].textContent;
    heads.forEach((head, k) =>
      head.addEventListener("click", () => {
        const numeric = head.classList.contains("n");
        const [usual, other] = numeric ? ["descending", "ascending"] : ["ascending", "descending"];
        const order = head.getAttribute("aria-sort") === usual ? other : usual;
        const sign = order === "ascending" ? 1 : -1;
        const compare = numeric ? (a, b) => a - b : (a, b) => a.localeCompare(b, undefined, { numeric: true });
        for (const each of heads) each.setAttribute("aria-sort", each === head ? order : "none");
        body.append(...[...body.rows].sort((a, b) => sign * compare(key(a, k), key(b, k))));
      }),
    );
    body.addEventListener("click", ({ target }) => {
      const row = target.closest("tr[data-node]");
      if (row) choose(+row.dataset.node, { move: true });
      if (row) document.getElementById("figure-map").scrollIntoView({ behavior: "smooth", block: "nearest" });
    });
  }

  document.documentElement.dataset.layer = "final";
  document.documentElement.dataset.ready = "map";
  for (const name of Object.keys(data.figures)) {
    if (name === "map") continue;
    await new Promise((resolve) => setTimeout(resolve));
    onChosen((await draw(name)).renderers.find((renderer) => renderer.name === "points"));
  }
  document.documentElement.dataset.ready = "true";
})();
