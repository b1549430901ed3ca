"use strict";
const byId = (id) => document.getElementById(id);
const page = JSON.parse(byId("page-data").textContent);

// Tables with sorting by the head and a field that filters.

function startSortable(table) {
  const body = table.tBodies[0], rows = Array.from(body.rows);
  const parts = document.querySelector(`[data-for="${table.id}"]`);
  const field = parts.querySelector("input"), status = parts.querySelector("[role=status]");
  const all = parts.querySelector("button");
  let limit = Number(table.dataset.first);

  function filter() {
    const wanted = field.value.trim().toLowerCase();
    let count = 0;
    for (const row of body.rows) {
      const fits = row.textContent.toLowerCase().includes(wanted);
      count += fits;
      row.hidden = !fits || count > limit;
    }
    const shown = Math.min(count, limit);
    status.textContent = `${shown} of ${rows.length} shown`;
    all.hidden = count <= limit;
    all.textContent = `Show all ${count}`;
  }

  function sortBy(head) {
    const before = head.getAttribute("aria-sort");
    const place = Array.from(head.parentNode.cells).indexOf(head);
    for (const other of table.querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
    const value = (row) => row.cells[place].dataset.value ?? row.cells[place].textContent.trim();
    const numeric = rows.every((row) => value(row) === "" || !Number.isNaN(Number(value(row))));
    const descending = before ? before === "ascending" : numeric && head.dataset.up === undefined;
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const order = numeric
      ? (a, b) => Number(value(a)) - Number(value(b))
      : (a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0);
    body.append(...rows.slice().sort((a, b) => (descending ? order(b, a) : order(a, b))));
    filter();
  }

  table.tHead.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) sortBy(button.closest("th"));
  });
  field.addEventListener("input", filter);
  all.addEventListener("click", () => {
    limit = Infinity;
    filter();
  });
  parts.hidden = false;
  filter();
}

for (const table of document.querySelectorAll("table[data-first]")) startSortable(table);

// The slider of thresholds.

function startThreshold() {
  const slider = byId("threshold");
  if (!slider || !page.thresholds) return;
  const known = page.thresholds;
  const share = (part, whole) => (whole ? `${(100 * part / whole).toFixed(0)} %` : "–");

  function update() {
    const at = Number(slider.value), found = known.found[at], alarms = known.alarms[at];
    const missed = known.n_positive - found, rest = known.n_negative - alarms;
    const shown = `${at} %`;
    slider.setAttribute("aria-valuetext", shown);
    const texts = {
      at: shown, found: found, missed: missed, alarms: alarms, rest: rest,
      recall: share(found, known.n_positive), precision: share(found, found + alarms),
      accuracy: share(found + rest, known.n_positive + known.n_negative),
    };
    for (const [name, text] of Object.entries(texts)) byId(`threshold-${name}`).textContent = text;
  }

  slider.addEventListener("input", update);
  byId("threshold-reset").addEventListener("click", () => {
    slider.value = known.at;
    update();
    slider.focus();
  });
  slider.closest(".threshold").classList.add("live");
  update();
}

startThreshold();
