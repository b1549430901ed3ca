"use strict";
const byId = (id) => document.getElementById(id);
const page = JSON.parse(byId("page-data").textContent);
let question = null; // the last request for a table: address and options of fetch
let reference = null; // SMILES that differences are counted from
let latest = 0; // number of the last request for cards; earlier answers are dropped

function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== null && text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function drawing(svg) {
  const root = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
  return document.importNode(root, true);
}

function show(status, text, isError = false) {
  status.textContent = text;
  status.classList.toggle("error", isError);
}

async function ask(address, options) {
  const answer = await fetch(address, options);
  if (answer.ok) return answer;
  let detail = `error ${answer.status}`;
  try {
    detail = (await answer.json()).detail;
  } catch { /* not JSON: the number must do */ }
  throw new Error(detail);
}

const asJson = (data) => ({ method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(data) });
const minus = (text) => text.replace("-", "−");
const percent = (value) => `${(100 * value).toFixed(0)} %`;
const signed = (text) => (text.startsWith("−") ? text : `+${text}`);
// Of numbers on the scale that was learned, such as contributions and differences.
const learnedDecimals = ({ hidden, decimals }) => (hidden ? 2 : decimals ?? 2);
// Numbers with the decimals of the training values; on a logarithmic scale with three digits.
const number = (value, { decimals }) => minus(decimals === null ? String(Number(value.toPrecision(3))) : value.toFixed(decimals));

function covariates() {
  const fields = document.querySelectorAll("[data-covariate]");
  return Object.fromEntries(Array.from(fields, (field) => [field.dataset.covariate, field.value]));
}

// --- the table

function predictionText(row, model) {
  const at = (name) => row[model.prefix + name];
  if (row[`${model.common}out_of_vocabulary`] === null) return "";
  if (model.kind === "classes") return `${at("class")} (${percent(at("probability"))})`;
  const [value, low, high] = ["prediction", "lower_90", "upper_90"].map((name) => number(at(name), model));
  return `${value} (${low} to ${high})`;
}

// Many targets: a coloured cell each, which opens the card of its target.

const many = page.cells;
let chosen = page.models[0].name;

// From -1, the lowest of the training values or an impossible class, to 1.
function standing(row, model) {
  const at = (name) => row[model.prefix + name];
  if (model.kind === "classes") return 2 * at(`probability_${model.positive}`) - 1;
  const { quantiles } = model, last = quantiles.length - 1, value = at("prediction");
  if (value <= quantiles[0]) return -1;
  if (value >= quantiles[last]) return 1;
  const above = quantiles.findIndex((bound) => bound > value), low = quantiles[above - 1];
  return 2 * (above - 1 + (value - low) / (quantiles[above] - low)) / last - 1;
}

function cellElement(row, model, line) {
  const cell = element("td"), at = (name) => row[model.prefix + name];
  const place = standing(row, model), outside = at("in_domain") === false;
  cell.className = `${place > 0 ? "high" : "low"}${outside ? " outside" : ""}`;
  cell.dataset.label = model.name;
  cell.style.setProperty("--part", Math.abs(place).toFixed(2));
  cell.title = `${model.name}: ${predictionText(row, model)}${outside ? ", outside the domain" : ""}`;
  const value = model.kind === "classes" ? at("class") : number(at("prediction"), model);
  const button = element("button", value, { type: "button" });
  const more = model.kind === "classes"
    ? percent(at("probability"))
    : `${number(at("lower_90"), model)} to ${number(at("upper_90"), model)}`;
  cell.append(button, element("small", more));
  if (model.wanted) cell.append(element("small", `${model.wanted.text}: ${percent(row[model.wanted.column])}`, { class: "wanted" }));
  if (typeof at("measured") === "number") cell.append(element("small", `measured ${number(at("measured"), model)}`));
  else if (at("measured")) cell.append(element("small", `measured ${at("measured")}`));
  cell.addEventListener("click", (event) => {
    event.stopPropagation();
    chosen = model.name;
    if (line) choose(line, row.smiles);
    else showCards(row.smiles);
  });
  return cell;
}

// The probability that all conditions of the profile hold.
function profileElement(row) {
  const cell = element("td"), chance = row[page.profile.column];
  cell.className = `profile ${chance > 0.5 ? "good" : "bad"}`;
  cell.dataset.label = "profile";
  cell.style.setProperty("--part", Math.abs(2 * chance - 1).toFixed(2));
  cell.title = `${page.profile.wanted}: ${percent(chance)}`;
  cell.append(element("strong", percent(chance)), element("small", `share ${percent(row[page.profile.share])}`));
  return cell;
}

function rowElement(row) {
  const line = element("tr"), first = element("th", null, { scope: "row" });
  const name = row.name || row.smiles || `row ${row.row}`;
  line.append(first);
  if (row.problem || !row.smiles) {
    first.textContent = name;
    line.append(element("td", row.problem, { colspan: page.models.length + (page.profile ? 1 : 0) }));
    return line;
  }
  first.append(element("button", name, { type: "button", title: row.smiles }));
  line.addEventListener("click", () => choose(line, row.smiles));
  if (page.profile) line.append(profileElement(row));
  for (const model of page.models) {
    if (many) {
      line.append(cellElement(row, model, line));
      continue;
    }
    const cell = element("td", predictionText(row, model));
    if (row[`${model.prefix}in_domain`] === false) cell.append(" ", element("span", "outside the domain", { class: "badge outside" }));
    line.append(cell);
  }
  return line;
}

function showTable(rows) {
  const table = byId("table"), head = element("tr"), body = table.querySelector("tbody");
  head.append(element("th", "molecule", { scope: "col" }));
  if (page.profile) { // the most probable first; what cannot be read comes last
    head.append(element("th", "whole profile", { scope: "col", title: page.profile.wanted }));
    rows = [...rows].sort((one, other) => (other[page.profile.column] ?? -1) - (one[page.profile.column] ?? -1));
  }
  for (const { name, kind, unit, wanted } of page.models) {
    if (many) {
      const title = element("th", name, { scope: "col" });
      if (unit && !name.includes(unit)) title.append(" ", element("small", unit));
      if (wanted) title.append(" ", element("small", wanted.text));
      head.append(title);
      continue;
    }
    head.append(element("th", `${name} (${kind === "numbers" ? "90 % interval" : "probability"})`, { scope: "col" }));
  }
  table.querySelector("thead").replaceChildren(head);
  body.replaceChildren(...rows.map(rowElement));
  table.hidden = false;
  const good = rows.findIndex((row) => !row.problem && row.smiles);
  if (good >= 0) choose(body.rows[good], rows[good].smiles);
  else byId("compound").hidden = true;
}

function choose(line, smiles) {
  for (const other of byId("table").querySelectorAll("[aria-selected]")) other.removeAttribute("aria-selected");
  line.setAttribute("aria-selected", "true");
  reference = smiles;
  byId("edit").value = smiles;
  showCards(smiles);
}

async function predict(address, options) {
  question = [address, options];
  show(byId("status"), "Predicting …");
  try {
    const { rows } = await (await ask(address, options)).json();
    const bad = rows.filter((row) => row.problem).length;
    show(byId("status"), `${rows.length} molecule${rows.length === 1 ? "" : "s"}${bad ? `, ${bad} not readable` : ""}.`);
    showTable(rows);
  } catch (error) {
    show(byId("status"), error.message, true);
  }
}

byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  const smiles = byId("smiles").value.split("\n").map((line) => line.trim()).filter(Boolean);
  if (!smiles.length) return show(byId("status"), "Enter at least one SMILES.", true);
  predict("/api/predict", asJson({ smiles, covariates: covariates() }));
});

byId("file").addEventListener("change", () => {
  const file = byId("file").files[0];
  if (!file) return;
  const ending = file.name.toLowerCase().split(".").at(-1);
  const format = ending.startsWith("sd") ? "sdf" : ending.startsWith("smi") ? "smi" : "csv";
  predict(`/api/table?format=${format}`, { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: file });
});

byId("download").addEventListener("click", async () => {
  try {
    const [address, options] = question;
    const answer = await ask(address + (address.includes("?") ? "&" : "?") + "output=csv", options);
    const link = element("a", null, { href: URL.createObjectURL(await answer.blob()), download: "predictions.csv" });
    link.click();
    URL.revokeObjectURL(link.href);
  } catch (error) {
    show(byId("status"), error.message, true);
  }
});

// --- the cards

function differenceText({ difference, model }) {
  if (model.kind === "numbers") {
    const fixed = (value) => minus(value.toFixed(learnedDecimals(model)));
    const scale = model.scale ? ` on the scale of ${model.hidden ?? model.scale}` : "";
    const spread = difference.std === null ? "" : ` ± ${fixed(difference.std)}`;
    return `${signed(fixed(difference.predicted))}${spread}${scale}`;
  }
  const [label, change] = Object.entries(difference.probabilities).at(-1);
  return `probability of ${label} ${signed(minus((100 * change).toFixed(0)))} points`;
}

function neighborFigure(near, model) {
  const figure = element("figure"), caption = element("figcaption");
  if (near.svg) figure.append(drawing(near.svg));
  const value = model.kind === "numbers" ? number(near.value, model) : near.class;
  const name = near.name ?? `training molecule ${near.index + 1}`;
  caption.append(element("strong", value), ` ${name}, ${near.alike.startsWith("same") ? "" : "similarity "}${near.alike}`);
  figure.append(caption);
  return figure;
}

function measuredCells(measured, model) {
  if (!measured) return ["", "", ""];
  const label = model.positive;
  const text = (value) => (label === null ? number(value, model) : percent(value[label]));
  return [String(measured.n), text(measured.with), text(measured.without)];
}

function groupTable(groups, model) {
  const table = element("table"), head = element("tr"), body = element("tbody");
  const effect = (value) => signed(minus(value.toFixed(learnedDecimals(model))));
  const known = groups.some((group) => group.measured);
  const mean = model.kind === "numbers" ? "mean" : `share of ${model.positive}`;
  const titles = ["group", "adds", ...(known ? ["training molecules with it", `their ${mean}`, `${mean} of the others`] : [])];
  for (const title of titles) head.append(element("th", title, { scope: "col" }));
  for (const group of groups) {
    const line = element("tr");
    const cells = [group.n > 1 ? `${group.name} (${group.n})` : group.name, effect(group.effect)];
    for (const text of [...cells, ...(known ? measuredCells(group.measured, model) : [])]) line.append(element("td", text));
    body.append(line);
  }
  table.append(element("thead"), body);
  table.tHead.append(head);
  const frame = element("div", null, { class: "scroll" });
  frame.append(table);
  return frame;
}

// Base, atoms and rest add up as they are written.
function sumText(card, model) {
  const decimals = learnedDecimals(model), rounded = (value) => Number(value.toFixed(decimals));
  const text = (value) => minus((rounded(value) || 0).toFixed(decimals));
  const parts = [["base", card.base], ...card.rest];
  const atoms = parts.reduce((left, [, value]) => left - rounded(value), rounded(card.decision));
  const added = [["atoms", atoms], ...card.rest].map(([name, value]) => `${signed(text(value))} (${name})`);
  const scale = model.hidden ? ` on the scale of ${model.hidden}` : "";
  const toward = card.toward === null ? scale : ` for ${card.toward}`;
  return `${text(card.base)} (base) ${added.join(" ")} = ${text(card.decision)}${toward}`;
}

function cardElement(card) {
  const { model } = card, made = element("article", null, { class: "compound" });
  const parts = element("div", null, { class: "parts" }), left = element("div"), right = element("div");
  const numbers = model.kind === "numbers", unit = model.unit ? ` ${model.unit}` : "";
  const shown = (value) => number(value, model) + unit;
  right.append(element("h2", model.name), element("p", numbers ? shown(card.predicted) : card.predicted, { class: "value" }));
  right.append(element("p", numbers
    ? `90 % interval ${shown(card.lower_90)} to ${shown(card.upper_90)}`
    : `probability ${percent(card.probability)}; wrong with a probability of ${percent(card.probability_wrong)}`));
  if (card.difference) {
    const line = element("p", null, { class: "difference" });
    line.append(element("strong", differenceText(card)), " against the molecule before");
    right.append(line);
  }
  if (card.training) right.append(element("p", card.training, { class: "muted" }));
  right.append(element("p", card.domain, { class: card.in_domain === false ? "warning" : "domain" }));
  if (card.structure) left.append(element("p", card.structure, { class: "muted" }));
  if (card.svg) left.append(drawing(card.svg));
  left.append(element("p", numbers ? "Orange atoms raise the prediction, blue ones lower it." : `Orange atoms speak for ${card.toward}, blue ones against it.`, { class: "muted" }));
  left.append(element("p", sumText(card, model), { class: "muted" }));
  parts.append(left, right);
  made.append(parts);
  if (card.neighbors.length) {
    const near = element("div", null, { class: "neighbors" });
    near.append(...card.neighbors.map((one) => neighborFigure(one, model)));
    made.append(element("h3", "Nearest training molecules, as measured"), near);
  }
  if (card.groups.length) made.append(element("h3", "Groups of the molecule, and what their atoms add"), groupTable(card.groups, model));
  return made;
}

function markChosen() {
  if (!many) return;
  const place = page.models.findIndex(({ name }) => name === chosen) + (page.profile ? 2 : 1);
  for (const line of byId("table").querySelectorAll("tbody tr")) {
    for (const cell of line.cells) cell.classList.toggle("open", cell.cellIndex === place && line.getAttribute("aria-selected") === "true");
  }
}

// What a change does to every target.
async function showEdited(smiles, own) {
  const table = byId("edited");
  table.hidden = true;
  if (smiles === null) return;
  const answer = await ask("/api/predict", asJson({ smiles: [`${smiles} changed`], covariates: covariates() }));
  const { rows: [row] } = await answer.json();
  if (own !== latest || row.problem) return;
  const line = element("tr");
  line.append(element("th", "changed", { scope: "row" }), ...(page.profile ? [profileElement(row)] : []), ...page.models.map((model) => cellElement(row, model, null)));
  table.tBodies[0].replaceChildren(line);
  table.hidden = false;
}

async function showCards(smiles) {
  const own = ++latest, previous = reference === smiles ? null : reference;
  try {
    const targets = many ? [chosen] : null;
    const answer = await ask("/api/cards", asJson({ smiles, previous, covariates: covariates(), targets }));
    const cards = await answer.json();
    if (own !== latest) return;
    byId("cards").replaceChildren(...cards.map(cardElement));
    markChosen();
    byId("compound").hidden = false;
    show(byId("edit-status"), "");
    if (many) showEdited(previous === null ? null : smiles, own);
  } catch (error) {
    if (own === latest) show(byId("edit-status"), error.message, true);
  }
}

let timer = 0;
byId("edit").addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(() => {
    const smiles = byId("edit").value.trim();
    if (smiles) showCards(smiles);
  }, 250);
});
