// Joins the page and Bokeh's pictures: layers, zoom, a chosen node, the table.
(async () => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const columns = { ...data.columns.texts };
  for (const [field, packed] of Object.entries(data.columns.numbers)) columns[field] = unpack(packed);
  const count = columns.final.length;
  const half = columns.every_half_width;
  const asked = Array.from(columns.std, Number.isFinite);
  columns.lower = columns.final.map((value, k) => (asked[k] ? value - half[k] : NaN));
  columns.upper = columns.final.map((value, k) => (asked[k] ? value + half[k] : NaN));
  columns.width = half.map((value, k) => (asked[k] ? 2 * value : NaN));
  // By its first text, such as a name, and by its id.
  const name = (node) => (columns.text1 ? `${columns.text1[node]} (${columns.text0[node]})` : columns.text0[node]);

  const mouse = matchMedia("(pointer: fine)").matches;
  const views = {};
  async function draw(figure) {
    const [view] = [...(await Bokeh.embed.embed_item(data.figures[figure]))];
    views[figure] = view;
    // A finger scrolls the page; a mouse may drag a picture.
    const pan = view.model.toolbar.tools.find((tool) => tool.type === "PanTool");
    if (pan) pan.active = mouse;
    return view.model;
  }

  // One box beside the mouse, with the numbers of what it points at.
  const tip = element("dl", [], { class: "tip", hidden: "" });
  document.body.append(tip);
  const told = (rows) => rows.flatMap(([label, text]) => [element("dt", label), element("dd", text)]);
  const numbersOf = (node) => [
    ...data.texts.map(([field, label]) => [label, columns[field][node]]),
    ...data.numbers.map(([field, label]) => [label, format(columns[field][node])]),
  ];
  function pointAt(figure, renderer, rows) {
    const box = document.getElementById(`figure-${figure}`);
    renderer.data_source.inspect.connect(() => {
      const [i] = renderer.data_source.inspected.indices;
      tip.hidden = i === undefined;
      if (i !== undefined) tip.replaceChildren(...told(rows(renderer.data_source.data, i)));
    });
    box.addEventListener("mousemove", ({ pageX, pageY, clientX }) => {
      const left = clientX > innerWidth - 260;
      tip.style.left = left ? "auto" : `${pageX + 14}px`;
      tip.style.right = left ? `${document.documentElement.clientWidth - pageX + 14}px` : "auto";
      tip.style.top = `${pageY + 14}px`;
    });
    box.addEventListener("mouseleave", () => (tip.hidden = true));
  }

  // The map first: it is what the reader waits for.
  const plot = await draw("map");
  const find = (mark) => plot.renderers.find((renderer) => renderer.name === mark);
  const marks = ["nodes", "areas"].map(find).filter(Boolean);
  const column = (renderer, field) => renderer.data_source.data[field];
  for (const mark of marks) pointAt("map", mark, ({ node }, i) => numbersOf(node[i]));

  // Layers. Nodes without a value are smaller, so that those with one stand out.
  const whole = marks.map((r) => column(r, "radius"));
  function paint(values, { palette, low, high }) {
    marks.forEach((renderer, k) => {
      const value = Array.from(column(renderer, "node"), (node) => values[node]);
      for (const glyph of [renderer.glyph, renderer.selection_glyph])
        glyph.fill_color.transform.setv({ palette, low, high });
      const sized = whole[k] && { radius: whole[k].map((r, i) => (Number.isFinite(value[i]) ? r : 0.7 * r)) };
      renderer.data_source.data = { ...renderer.data_source.data, value, ...sized };
    });
  }
  const blend = document.getElementById("blend");
  let shown = data.layers.findIndex(({ field }) => field === "final");
  function setLayer(index) {
    shown = index;
    const layer = data.layers[index];
    paint(columns[layer.field], layer);
    if (layer.field === "final" || layer.field === "base") blend.value = layer.field === "final" ? 1 : 0;
    for (const button of all("[data-layer]")) button.setAttribute("aria-pressed", String(+button.dataset.layer === index));
    for (const legend of all("[data-legend]")) legend.hidden = legend.dataset.legend !== String(index);
    document.documentElement.dataset.layer = layer.field;
  }
  for (const button of all("[data-layer]")) button.addEventListener("click", () => setLayer(+button.dataset.layer));
  // From the base prediction to the final one; known labels, which no model made, stay.
  const final = data.layers.findIndex(({ field }) => field === "final");
  blend.addEventListener("input", () => {
    const share = +blend.value;
    if (data.layers[shown].field !== "final") setLayer(final);
    blend.value = share;
    const mixed = Array.from(columns.final, (value, k) => {
      const from = columns.base[k];
      return Number.isFinite(from) ? from + share * (value - from) : value;
    });
    paint(mixed, data.layers[final]);
    document.documentElement.dataset.blend = String(share);
  });
  // Other values than those of a layer, on colours that are centred on zero; null goes back.
  function show(values) {
    if (!values) return setLayer(shown);
    const reach = Math.max(...values.map(Math.abs)) || 1;
    const { palette } = data.layers.find(({ field }) => field === "correction");
    paint(values, { palette, low: -reach, high: reach });
    for (const legend of all("[data-legend]")) legend.hidden = legend.dataset.legend !== "change";
    document.getElementById("change-low").textContent = format(-reach);
    document.getElementById("change-high").textContent = format(reach);
  }

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
    for (const [figure, view] of Object.entries(views)) {
      const picture = Object.assign(new Image(), { className: "paper", src: view.export("png", true).canvas.toDataURL() });
      const place = document.getElementById(`figure-${figure}`);
      place.classList.add("drawn");
      place.append(picture);
    }
  });
  addEventListener("afterprint", () => all("img.paper").forEach((picture) => picture.remove()));

  // One chosen node: from the map, from a cloud, from the table, or by its name.
  const panel = document.getElementById("node");
  const why = explainer(data, columns, name, show);
  const hint = (text) => panel.replaceChildren(element("div", text, { class: "hint" }));
  function choose(node, { move = false } = {}) {
    panel.replaceChildren(...numbersOf(node).map(([label, text]) => element("div", [element("dt", label), element("dd", text)])));
    panel.dataset.node = String(node);
    why(document.getElementById("why"), node);
    for (const renderer of marks) {
      const i = column(renderer, "node").indexOf(node);
      renderer.data_source.selected.indices = i < 0 ? [] : [i];
      if (i < 0 || !move) continue;
      const place = ["x", "y"].map((axis) => [column(renderer, axis)[i]].flat(9));
      const near = plot.x_range.end - plot.x_range.start > 0.5 * (full[0].end - full[0].start);
      view(near ? 0.3 : 1, place.map((values) => (Math.min(...values) + Math.max(...values)) / 2));
    }
    if (move) document.getElementById("figure-map").scrollIntoView({ behavior: "smooth", block: "nearest" });
    for (const row of all("tr[data-node]")) row.classList.toggle("chosen", +row.dataset.node === node);
  }
  const onChosen = (renderer) =>
    renderer.data_source.selected.properties.indices.change.connect(() => {
      const [i] = renderer.data_source.selected.indices;
      if (i !== undefined && panel.dataset.node !== String(column(renderer, "node")[i])) choose(column(renderer, "node")[i]);
    });
  marks.forEach(onChosen);
  const named = (asked, test) => data.texts.some(([field]) => test(String(columns[field][asked]).toLowerCase()));
  document.getElementById("find").addEventListener("change", ({ target }) => {
    const asked = target.value.trim().toLowerCase();
    if (!asked) return;
    for (const test of [(text) => text === asked, (text) => text.startsWith(asked), (text) => text.includes(asked)])
      for (let node = 0; node < count; node++) if (named(node, test)) return choose(node, { move: true });
    hint("No node is called so.");
    document.getElementById("why").replaceChildren();
  });

  // The table: the nodes that match, sorted, as many as there were rows at first; the file has all.
  const table = document.getElementById("corrections");
  if (table) {
    const heads = [...table.tHead.rows[0].cells];
    const body = table.tBodies[0];
    const most = body.rows.length;
    const filter = document.getElementById("filter");
    let by = { field: "correction", sign: -1, size: true };
    function compare(a, b) {
      const values = columns[by.field];
      if (Array.isArray(values)) return by.sign * String(values[a]).localeCompare(String(values[b]), undefined, { numeric: true });
      const [x, y] = by.size ? [Math.abs(values[a]), Math.abs(values[b])] : [values[a], values[b]];
      return Number.isFinite(x) && Number.isFinite(y) ? by.sign * (x - y) : Number.isFinite(y) - Number.isFinite(x);
    }
    function cell(node, field) {
      const value = columns[field][node];
      if (field.startsWith("text")) return element("td", value);
      const lifted = field === "correction" && value ? (value > 0 ? " up" : " down") : "";
      return element("td", (field === "correction" && value > 0 ? "+" : "") + format(value, data.digits), { class: `n${lifted}`, "data-value": value });
    }
    function fill() {
      const asked = filter.value.trim().toLowerCase();
      const nodes = [...Array(count).keys()].filter((node) => !asked || named(node, (text) => text.includes(asked)));
      nodes.sort(compare);
      const rows = nodes.slice(0, Math.max(most, 100)).map((node) =>
        element("tr", heads.map((head) => cell(node, head.dataset.field)), { "data-node": node, tabindex: 0 }));
      body.replaceChildren(...rows);
      document.getElementById("matches").textContent = asked ? `${nodes.length.toLocaleString("en-US")} nodes match.` : "";
    }
    heads.forEach((head) =>
      head.addEventListener("click", () => {
        const [usual, other] = head.classList.contains("n") ? ["descending", "ascending"] : ["ascending", "descending"];
        const order = head.getAttribute("aria-sort") === usual ? other : usual;
        by = { field: head.dataset.field, sign: order === "ascending" ? 1 : -1, size: false };
        for (const each of heads) each.setAttribute("aria-sort", each === head ? order : "none");
        fill();
      }),
    );
    filter.addEventListener("input", fill);
    const pick = ({ target }) => {
      const row = target.closest("tr[data-node]");
      if (row) choose(+row.dataset.node, { move: true });
    };
    body.addEventListener("click", pick);
    body.addEventListener("keydown", (event) => event.key === "Enter" && pick(event));
    for (const row of body.rows) row.tabIndex = 0;
    document.getElementById("download").addEventListener("click", () => {
      const fields = [...data.texts, ...data.numbers];
      const quoted = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
      const plain = (value) => (typeof value !== "number" ? quoted(String(value)) : Number.isFinite(value) ? String(+value.toPrecision(7)) : "");
      const lines = [fields.map(([, label]) => quoted(label)).join(",")];
      for (let node = 0; node < count; node++) lines.push(fields.map(([field]) => plain(columns[field][node])).join(","));
      const link = element("a", [], { download: "predictions.csv", href: URL.createObjectURL(new Blob([lines.join("\r\n") + "\r\n"], { type: "text/csv" })) });
      link.click();
    });
  }

  document.documentElement.dataset.layer = "final";
  document.documentElement.dataset.ready = "map";
  for (const figure of Object.keys(data.figures)) {
    if (figure === "map") continue;
    await new Promise((resolve) => setTimeout(resolve));
    const points = (await draw(figure)).renderers.find((renderer) => renderer.name === "points");
    if (!points) continue;
    const [x, y] = data.axes[figure];
    pointAt(figure, points, (source, i) => [["node", columns.text0[source.node[i]]], [x, format(source.x[i])], [y, format(source.y[i])]]);
    onChosen(points);
  }
  document.documentElement.dataset.ready = "true";
})();
