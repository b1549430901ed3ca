"use strict";
// Drawing graphs. Text from data only ever becomes textContent, never markup.

const byId = (id) => document.getElementById(id);
const page = JSON.parse(byId("page-data").textContent);
const NODE_RADIUS = 7;
// A Map, since an object would know labels such as "constructor" as well.
const BONDS = new Map([
  ["-", [[0, false]]],
  ["=", [[-0.5, false], [0.5, false]]],
  ["#", [[-1, false], [0, false], [1, false]]],
  [":", [[-0.5, false], [0.5, true]]],
]);

function element(name, attributes, parent, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

function contributionColor(value, limit) {
  const share = limit > 0 ? Math.max(-1, Math.min(1, value / limit)) : 0;
  const end = share > 0 ? page.colors.for : page.colors.against;
  return page.colors.neutral.map((n, k) => Math.round(n + Math.abs(share) * (end[k] - n)));
}

function inkOn(rgb) {
  const [red, green, blue] = rgb.map((channel) => Math.pow(channel / 255, 2.2));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.25 ? "#222" : "#fff";
}

// options: contributions (one number a node), highlight (a Set of nodes), root (a node)
function drawGraph(svg, graph, options) {
  const margin = 2.4 * NODE_RADIUS;
  const width = Math.max(...graph.x) + 2 * margin, height = Math.max(...graph.y) + 2 * margin;
  svg.replaceChildren();
  svg.setAttribute("viewBox", `${-margin} ${-margin} ${width} ${height}`);
  const marked = options.highlight || new Set();
  drawHighlight(svg, graph, marked, options.root);
  drawEdges(svg, graph);
  drawNodes(svg, graph, options.contributions);
  return [width, height];
}

function drawHighlight(svg, graph, marked, root) {
  if (!marked.size) return;
  const green = page.colors.highlight;
  for (let k = 0; k < graph.edges.length; k += 2) {
    const [u, v] = [graph.edges[k], graph.edges[k + 1]];
    if (marked.has(u) && marked.has(v))
      element("path", { d: `M${graph.x[u]} ${graph.y[u]}L${graph.x[v]} ${graph.y[v]}`, stroke: green, "stroke-width": 6, "stroke-opacity": 0.45 }, svg);
  }
  for (const node of marked)
    element("circle", { cx: graph.x[node], cy: graph.y[node], r: NODE_RADIUS * (node === root ? 1.6 : 1.3), fill: green, "fill-opacity": node === root ? 1 : 0.55 }, svg);
}

function drawEdges(svg, graph) {
  const withText = graph.edges.length <= 160;
  for (let k = 0; k < graph.edges.length; k += 2) {
    const [u, v] = [graph.edges[k], graph.edges[k + 1]];
    const label = graph.edge_labels ? graph.edge_labels[k / 2] : null;
    const [ax, ay, bx, by] = [graph.x[u], graph.y[u], graph.x[v], graph.y[v]];
    const length = Math.hypot(bx - ax, by - ay) || 1;
    const [sx, sy] = [-(by - ay) / length, (bx - ax) / length];
    for (const [shift, dashed] of BONDS.get(label) || BONDS.get("-")) {
      const [dx, dy] = [sx * shift * 3, sy * shift * 3];
      element("path", { d: `M${ax + dx} ${ay + dy}L${bx + dx} ${by + dy}`, class: dashed ? "drawn-edge dashed" : "drawn-edge", "stroke-width": 1 }, svg);
    }
    if (withText && label !== null && !BONDS.has(label))
      element("text", { x: (ax + bx) / 2 + 4 * sx, y: (ay + by) / 2 + 4 * sy + 2, class: "edge-label" }, svg, label.slice(0, 8));
  }
}

function drawNodes(svg, graph, contributions) {
  const limit = contributions ? Math.max(...contributions.map(Math.abs)) : 0;
  graph.labels.forEach((label, node) => {
    const rgb = contributions ? contributionColor(contributions[node], limit) : [232, 237, 242];
    const group = element("g", {}, svg);
    const words = contributions ? `${label}: ${signed(contributions[node])}` : label;
    element("title", {}, group, words);
    element("circle", { cx: graph.x[node], cy: graph.y[node], r: NODE_RADIUS, fill: `rgb(${rgb})`, class: "node-rim" }, group);
    const text = label.length > 4 ? label.slice(0, 3) + "…" : label;
    const size = Math.min(8.5, 19 / Math.max(text.length, 1));
    element("text", { x: graph.x[node], y: graph.y[node] + 0.35 * size, "font-size": size, fill: inkOn(rgb), class: "node-label" }, group, text);
  });
}

function signed(value) {
  const text = Math.abs(value) >= 0.0995 ? Math.abs(value).toFixed(2) : Number(Math.abs(value).toPrecision(2)).toString();
  return (value < 0 ? "\u2212" : "+") + text;
}
