// The table of patterns: sorting, filtering, and a closer look at one.

const FIRST_ROWS = 25;

function startTable() {
  const table = byId("pattern-table");
  const bodies = Array.from(table.tBodies);
  const all = byId("all-patterns");
  let limit = FIRST_ROWS;
  const [text, depth, group] = ["pattern-text", "pattern-depth", "pattern-group"].map(byId);

  function sortBy(head) {
    const key = head.dataset.key, before = head.getAttribute("aria-sort");
    const descending = before ? before === "ascending" : key !== "text" && key !== "depth" && key !== "lean";
    for (const other of table.querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const order = key === "text"
      ? (a, b) => (a.dataset.text < b.dataset.text ? -1 : a.dataset.text > b.dataset.text ? 1 : 0)
      : (a, b) => Number(a.dataset[key]) - Number(b.dataset[key]);
    const sorted = bodies.slice().sort((a, b) => (descending ? order(b, a) : order(a, b)));
    table.append(...sorted);
    filter();
  }

  // The rows that fit, in their present order; the first of them only, until all are asked for.
  function filter() {
    const wanted = text.value.trim().toLowerCase();
    let count = 0;
    for (const body of table.tBodies) {
      const fits = body.dataset.text.toLowerCase().includes(wanted)
        && (!depth.value || body.dataset.depth === depth.value)
        && (!group.value || body.dataset.group === group.value);
      count += fits;
      body.hidden = !fits || count > limit;
    }
    byId("pattern-count").textContent = count === bodies.length ? `${count} patterns` : `${count} of ${bodies.length} patterns`;
    byId("no-patterns").hidden = count > 0;
    all.hidden = count <= limit;
    all.textContent = `Show all ${count}`;
  }

  function toggle(button) {
    const more = byId(button.getAttribute("aria-controls"));
    const open = button.getAttribute("aria-expanded") !== "true";
    button.setAttribute("aria-expanded", String(open));
    more.hidden = !open;
    const large = more.querySelector(".large-tree");
    if (!open || large.firstChild) return;
    large.append(button.closest("tr").querySelector(".tree svg").cloneNode(true));
    const place = page.occurrences[button.dataset.pattern];
    const svg = more.querySelector(".occurrence svg");
    if (!place || !svg) return;
    const [width, height] = drawGraph(svg, place, { highlight: new Set(place.nodes), root: place.root });
    svg.setAttribute("width", 1.6 * width);
    svg.setAttribute("height", 1.6 * height);
  }

  table.tHead.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) sortBy(button.closest("th"));
  });
  table.addEventListener("click", (event) => {
    const button = event.target.closest(".more");
    if (button) toggle(button);
  });
  text.addEventListener("input", filter);
  depth.addEventListener("change", filter);
  group.addEventListener("change", filter);
  all.addEventListener("click", () => {
    limit = Infinity;
    filter();
  });
  byId("clear-filters").addEventListener("click", () => {
    [text.value, depth.value, group.value] = ["", "", ""];
    filter();
    text.focus();
  });
  filter();
}

startTable();
