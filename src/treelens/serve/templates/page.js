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
// Numbers with the decimals of the training values; on a logarithmic scale with three digits.
const number = (value, { decimals }) => minus(decimals === null ? String(Number(value.toPrecision(3))) : value.toFixed(decimals));

function covariates() {
  const fields = document.querySelectorAll("[data-covariate]");
  return Object.fromEntries(Array.from(fields, (field) => [field.dataset.covariate, field.value]));
}

// --- the table

function predictionText(row, model) {
  const at = (name) => row[model.prefix + name];
  if (at("out_of_vocabulary") === null) return "";
  if (model.kind === "classes") return `${at("class")} (${percent(at("probability"))})`;
  const [value, low, high] = ["prediction", "lower_90", "upper_90"].map((name) => number(at(name), model));
  return `${value} (${low} to ${high})`;
}

function rowElement(row) {
  const line = element("tr"), first = element("th", null, { scope: "row" });
  const name = row.name || row.smiles || `row ${row.row}`;
  line.append(first);
  if (row.problem || !row.smiles) {
    first.textContent = name;
    line.append(element("td", row.problem, { colspan: page.models.length }));
    return line;
  }
  first.append(element("button", name, { type: "button", title: row.smiles }));
  line.addEventListener("click", () => choose(line, row.smiles));
  for (const model of page.models) {
    const cell = element("td", predictionText(row, model));
    if (row[`${model.prefix}in_domain`] === false) cell.append(" ", element("span", "outside the domain", { class: "badge outside" }));
    line.append(cell);
  }
  return line;
}

function showTable(rows) {
  const table = byId("table"), head = element("tr"), body = table.querySelector("tbody");
  head.append(element("th", "molecule", { scope: "col" }));
  for (const { name, kind } of page.models) {
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
    const fixed = (value) => minus(value.toFixed(model.decimals ?? 2));
    const scale = model.scale ? ` on the scale of ${model.hidden ?? model.scale}` : "";
    return `${signed(fixed(difference.predicted))} ± ${fixed(difference.std)}${scale}`;
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
  const effect = (value) => signed(minus(value.toFixed(model.decimals ?? 2)));
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
  const decimals = model.hidden ? 2 : model.decimals ?? 2, rounded = (value) => Number(value.toFixed(decimals));
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

async function showCards(smiles) {
  const own = ++latest, previous = reference === smiles ? null : reference;
  try {
    const answer = await ask("/api/cards", asJson({ smiles, previous, covariates: covariates() }));
    const cards = await answer.json();
    if (own !== latest) return;
    byId("cards").replaceChildren(...cards.map(cardElement));
    byId("compound").hidden = false;
    show(byId("edit-status"), "");
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
