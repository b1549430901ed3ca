// The panel beside the map: one graph, and why it was decided the way it was.

const details = new Map(page.graphs.map((graph) => [graph.index, graph]));

function fillList(list, rows) {
  list.replaceChildren(...rows.map(([value, words]) => {
    const item = document.createElement("li");
    const number = document.createElement("span");
    number.className = "value " + (value < 0 ? "color-0" : "color-1");
    number.textContent = signed(value);
    const text = document.createElement("span");
    text.append(...words);
    item.append(number, text);
    return item;
  }));
}

function code(text) {
  const made = document.createElement("code");
  made.textContent = text;
  return made;
}

function verdict(place) {
  const map = page.map;
  const predicted = page.classes[map.predicted[place]];
  const sure = `Predicted ${predicted} (probability ${Math.round(100 * map.probability[place])}\u202f%)`;
  if (!map.class) return sure + ".";
  const truth = page.classes[map.class[place]];
  return map.class[place] === map.predicted[place] ? `${sure}, rightly.` : `${sure}; the class given is ${truth}.`;
}

// place: position in the map's lists
function showGraph(place) {
  const index = page.map.index[place];
  const graph = details.get(index);
  byId("panel-empty").hidden = true;
  byId("panel-content").hidden = false;
  byId("panel-title").textContent = `Graph ${index}`;
  byId("panel-verdict").textContent = verdict(place);
  byId("graph-number").value = index;
  for (const id of ["panel-drawing", "panel-legend", "panel-patterns", "panel-neighbors"]) byId(id).toggleAttribute("hidden", !graph);
  for (const heading of byId("panel-content").querySelectorAll("h4")) heading.hidden = !graph;
  byId("panel-name").textContent = graph && graph.name ? graph.name : "";
  byId("panel-warning").hidden = !(graph && graph.warning);
  if (graph) showDetails(graph);
  else byId("panel-sum").textContent = "This graph is not among those whose drawing is in this file.";
}

function showDetails(graph) {
  drawGraph(byId("panel-drawing"), graph, { contributions: graph.contributions });
  byId("legend-against").textContent = `against ${graph.toward}`;
  byId("legend-for").textContent = `for ${graph.toward}`;
  const rest = graph.decision - graph.base;
  byId("panel-sum").textContent = `Decision ${signed(graph.decision)} for ${graph.toward}: ${signed(graph.base)} to begin with, and ${signed(rest)} from the nodes.`;
  if (graph.warning) byId("panel-warning").textContent = graph.warning;
  fillList(byId("panel-patterns"), graph.patterns.map(([id, value]) => [value, [code(page.pattern_texts[id])]]));
  fillList(byId("panel-neighbors"), graph.neighbors.map((n) => [n.contribution, [`training graph ${n.index}, class ${n.class}`]]));
}

function paintLegend() {
  const stops = [-1, -0.5, 0, 0.5, 1].map((x) => `rgb(${contributionColor(x, 1)})`);
  for (const bar of document.querySelectorAll(".legend-bar")) bar.style.background = `linear-gradient(to right, ${stops})`;
}
