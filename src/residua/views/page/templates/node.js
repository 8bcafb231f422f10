"use strict";
// Why a node is predicted as it is, and what its label would change. Text from data only ever becomes textContent.
const ARRAYS = { f4: Float32Array, f8: Float64Array, i4: Int32Array };
const unpack = ({ kind, data }) => new ARRAYS[kind](Uint8Array.from(atob(data), (c) => c.charCodeAt(0)).buffer);
const minus = (text) => text.replaceAll("-", "\u2212");
const format = (value, digits) => {
  if (typeof value !== "number") return String(value);
  if (!Number.isFinite(value)) return "\u2013";
  const plain = Math.abs(value) >= 1000 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: 4 };
  const fixed = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return minus(value.toLocaleString("en-US", digits === undefined ? plain : fixed));
};
const signed = (value) => (value > 0 ? "+" : "") + format(value);
const element = (tag, content = [], attributes = {}) => {
  const made = document.createElement(tag);
  made.append(...[content].flat());
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
};
const tableOf = (caption, heads, rows) => {
  const line = (cells, tag) => element("tr", cells.map((cell, k) => element(tag, cell, k ? { class: "n" } : {})));
  const head = element("tr", heads.map((cell, k) => element("th", cell, { scope: "col", ...(k ? { class: "n" } : {}) })));
  return element("div", [
    element("h3", caption),
    element("table", [element("thead", head), element("tbody", rows.map((cells) => line(cells, "td")))]),
  ]);
};

// The field: G by rows, in the arrays that the page brings.
function readField(given) {
  if (!given) return null;
  const field = { ...given };
  for (const name of ["start", "to", "entry", "diagonal", "residual", "known"]) field[name] = unpack(given[name]);
  field.lever = given.lever ? given.lever.map(unpack) : [];
  return field;
}

// What each neighbour adds to the correction of node i: -G_ij r_j / G_ii.
function pulls({ start, to, entry, diagonal, residual, known }, i) {
  const found = [];
  for (let at = start[i]; at < start[i + 1]; at++) {
    const j = to[at];
    found.push({ node: j, residual: residual[j], known: known[j] > 0, pull: (-entry[at] * residual[j]) / diagonal[i] });
  }
  return found.sort((a, b) => Math.abs(b.pull) - Math.abs(a.pull));
}

// Column i of the covariance of unknown nodes: conjugate gradients for G_UU x = e_i, and the coefficients' part.
function covariance({ start, to, entry, diagonal, known, beta, lever }, i) {
  const n = diagonal.length;
  const x = new Float64Array(n), r = new Float64Array(n), p = new Float64Array(n), Gp = new Float64Array(n);
  r[i] = 1;
  p[i] = 1 / diagonal[i];
  let rz = 1 / diagonal[i];
  for (let step = 0; step < 20_000; step++) {
    let pGp = 0;
    for (let k = 0; k < n; k++) {
      if (known[k]) continue;
      let sum = diagonal[k] * p[k];
      for (let at = start[k]; at < start[k + 1]; at++) sum += entry[at] * p[to[at]];
      Gp[k] = sum;
      pGp += p[k] * sum;
    }
    const step_length = rz / pGp;
    let next = 0, size = 0;
    for (let k = 0; k < n; k++) {
      if (known[k]) continue;
      x[k] += step_length * p[k];
      r[k] -= step_length * Gp[k];
      next += (r[k] * r[k]) / diagonal[k];
      size += r[k] * r[k];
    }
    if (size < 1e-24) break;
    for (let k = 0; k < n; k++) if (!known[k]) p[k] = r[k] / diagonal[k] + (next / rz) * p[k];
    rz = next;
  }
  return x.map((value, k) => value / beta + lever.reduce((sum, column) => sum + column[k] * column[i], 0));
}

// Intervals of a node and of some neighbours under each other; a known label is a diamond.
function intervalChart(rows) {
  const svg = (tag, attributes, text = "") => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.textContent = text;
    return made;
  };
  const ends = rows.flatMap(({ low, high, middle }) => [low, high, middle]).filter(Number.isFinite);
  const [least, most] = [Math.min(...ends), Math.max(...ends)];
  const place = (value) => 130 + (260 * (value - least)) / (most - least || 1);
  const height = 22 * rows.length + 20;
  const picture = svg("svg", { viewBox: `0 0 400 ${height}`, role: "img", "aria-label": "Intervals of this node and its neighbours" });
  rows.forEach(({ name, low, high, middle, known }, k) => {
    const y = 14 + 22 * k;
    picture.append(svg("text", { x: 0, y: y + 4 }, name.length > 20 ? `${name.slice(0, 19)}\u2026` : name));
    if (Number.isFinite(low))
      picture.append(svg("line", { x1: place(low), x2: place(high), y1: y, y2: y, stroke: "var(--accent)", "stroke-width": k ? 3 : 6, opacity: 0.55 }));
    const [x, s] = [place(middle), 5];
    const shape = known
      ? svg("path", { d: `M${x - s} ${y}L${x} ${y - s}L${x + s} ${y}L${x} ${y + s}Z`, fill: "var(--ink)" })
      : svg("circle", { cx: x, cy: y, r: 4, fill: "var(--accent)" });
    picture.append(shape);
  });
  for (const [x, value, anchor] of [[130, least, "start"], [390, most, "end"]])
    picture.append(svg("text", { x, y: height - 2, "text-anchor": anchor, opacity: 0.7 }, format(value)));
  return picture;
}

// All that the page says of one node. `columns` by field, `name` of a node, `show` draws other values on the map.
function explainer(data, columns, name, show) {
  const field = readField(data.field);
  const features = data.features && {
    names: data.features.names,
    values: data.features.values.map((column) => (Array.isArray(column) ? column : unpack(column))),
    added: data.features.added.map(unpack),
  };
  const MOST = 8;

  function sentence(i) {
    const at = (key) => columns[key][i];
    if (data.field && Number.isFinite(at("correction")))
      return `${format(at("final"))} = ${format(at("base"))} from its features ${at("correction") < 0 ? "\u2212" : "+"} ${format(Math.abs(at("correction")))} from its neighbours.`;
    if (!Number.isFinite(at("left_out_mean"))) return "";
    const inside = Math.abs(at("truth") - at("left_out_mean")) <= at("every_half_width");
    return (
      `Its label is known: ${format(at("truth"))}. The other labels say ${format(at("left_out_mean"))}, ` +
      `${format(at("left_out_mean") - at("every_half_width"))} to ${format(at("left_out_mean") + at("every_half_width"))}: ` +
      `${inside ? "the label is inside" : "the label is outside, which happens to one in ten"}.`
    );
  }

  function ofFeatures(i) {
    const rows = features.names.map((label, j) => [label, features.values[j][i], features.added[j][i]]);
    rows.sort((a, b) => Math.abs(b[2]) - Math.abs(a[2]));
    const rest = rows.slice(MOST).reduce((sum, row) => sum + row[2], 0);
    const cells = rows.slice(0, MOST).map(([label, value, added]) => [label, format(value), signed(added)]);
    if (rows.length > MOST) cells.push([`${rows.length - MOST} others`, "", signed(rest)]);
    cells.unshift(["average of all nodes", "", format(data.features.average)]);
    cells.push(["base prediction", "", format(columns.base[i])]);
    return tableOf("What its features add", ["feature", "value", "adds"], cells);
  }

  function ofNeighbours(i) {
    const found = pulls(field, i);
    const cells = found.slice(0, MOST).map((n) => [
      name(n.node), `${signed(n.residual)}${n.known ? "" : " (expected)"}`, signed(n.pull),
    ]);
    const rest = found.slice(MOST).reduce((sum, n) => sum + n.pull, 0);
    if (found.length > MOST) cells.push([`${found.length - MOST} others`, "", signed(rest)]);
    const total = found.reduce((sum, n) => sum + n.pull, 0);
    const own = columns.correction[i] - total;
    if (Math.abs(own) > 1e-3 * Math.abs(columns.correction[i]))
      cells.push(["coefficients without its own label", "", signed(own)]);
    cells.push(["correction", "", signed(columns.correction[i])]);
    return tableOf("Which neighbours move it", ["neighbour", "its residual", "moves it by"], cells);
  }

  function ofIntervals(i) {
    const near = field ? pulls(field, i).slice(0, 5).map((n) => n.node) : [];
    const rows = [i, ...near].map((k) => {
      const known = Number.isFinite(columns.truth[k]) && !Number.isFinite(columns.lower[k]);
      return { name: name(k), known, middle: columns.final[k], low: columns.lower[k], high: columns.upper[k] };
    });
    return element("div", [element("h3", "How sure, beside its neighbours"), intervalChart(rows),
      element("p", "Bars are 90 % intervals, diamonds are known labels.", { class: "hint" })]);
  }

  function whatIf(i) {
    const box = element("input", [], { type: "number", step: "any", id: "if", value: Number(columns.final[i].toPrecision(4)) });
    const button = element("button", "Show what changes", { type: "button" });
    const undo = element("button", "Back to the map", { type: "button", hidden: "" });
    const answer = element("p", [], { "aria-live": "polite" });
    button.addEventListener("click", () => {
      if (box.value.trim() === "" || !Number.isFinite(+box.value)) return void (answer.textContent = "Type a number.");
      const column = covariance(field, i);
      const change = column.map((value) => ((+box.value - columns.final[i]) * value) / column[i]);
      const most = [...change.keys()].filter((k) => k !== i && !field.known[k]);
      most.sort((a, b) => Math.abs(change[b]) - Math.abs(change[a]));
      const told = most.slice(0, 3).map((k) => `${name(k)} ${format(columns.final[k])} \u2192 ${format(columns.final[k] + change[k])}`);
      answer.textContent = `It would move ${told.join(", ")}; the map shows all changes.`;
      show(change);
      undo.hidden = false;
      document.documentElement.dataset.changed = String(change[most[0]]);
    });
    undo.addEventListener("click", () => {
      show(null);
      undo.hidden = true;
      answer.textContent = "";
    });
    const label = element("label", [`If ${data.target} were known here to be `, box], { for: "if" });
    return element("div", [element("h3", "What if"), element("p", [label, " ", button, " ", undo]), answer]);
  }

  return function why(panel, i) {
    const parts = [];
    if (features) parts.push(ofFeatures(i));
    if (field && Number.isFinite(columns.correction[i])) parts.push(ofNeighbours(i));
    parts.push(ofIntervals(i));
    if (field && field.whatIf && !field.known[i]) parts.push(whatIf(i));
    panel.replaceChildren(element("h3", `Why ${name(i)}?`), element("p", sentence(i)), element("div", parts, { class: "columns" }));
  };
}
