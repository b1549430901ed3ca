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
    const found = (await answer.json()).detail;
    detail = typeof found === "string" ? found : found.map((one) => `${one.loc.at(-1)}: ${one.msg}`).join("; ");
  } catch { /* not JSON: the number must do */ }
  throw new Error(detail);
}

const asJson = (data) => ({ method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(data) });
const number = (value) => (value === null ? "–" : String(Number(value.toPrecision(3))).replace("-", "−"));
const signed = (value) => (value > 0 ? "+" : "") + number(value);
const percent = (value) => `${(100 * value).toFixed(0)} %`;

function covariates() {
  const fields = document.querySelectorAll("[data-covariate]");
  return Object.fromEntries(Array.from(fields, (field) => [field.dataset.covariate, field.value]));
}

// --- the table

function rowCells(row) {
  const cells = [];
  for (const { prefix, kind } of page.models) {
    const at = (name) => row[prefix + name];
    if (kind === "numbers") {
      cells.push(at("prediction") === null ? "" : `${number(at("prediction"))} (${number(at("lower_90"))} to ${number(at("upper_90"))})`);
    } else {
      cells.push(at("class") === null ? "" : `${at("class")} (${percent(at("probability"))})`);
    }
    cells.push(at("in_domain") === null || at("in_domain") === undefined ? "" : at("in_domain") ? "yes" : "no");
  }
  return cells;
}

function showTable(rows) {
  const table = byId("table"), head = element("tr");
  const titles = ["molecule"];
  for (const { name, kind } of page.models) {
    titles.push(`${name} (${kind === "numbers" ? "90 % interval" : "probability"})`, "in domain");
  }
  for (const title of titles) head.append(element("th", title, { scope: "col" }));
  table.querySelector("thead").replaceChildren(head);
  const body = table.querySelector("tbody");
  body.replaceChildren();
  for (const row of rows) {
    const line = element("tr"), first = element("td");
    const name = row.name || row.smiles || `row ${row.row}`;
    if (row.problem || !row.smiles) first.append(element("span", row.problem ? `${name}: ${row.problem}` : name));
    else {
      const button = element("button", name, { type: "button", title: row.smiles });
      line.addEventListener("click", () => choose(line, row.smiles));
      first.append(button);
    }
    line.append(first);
    for (const text of rowCells(row)) line.append(element("td", text));
    body.append(line);
  }
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

function differenceText(card) {
  const { difference, model } = card;
  if (model.kind === "numbers") {
    const error = difference.std === undefined ? "" : ` ± ${number(difference.std)}`;
    return `${signed(difference.predicted)}${error}${model.scale ? ` (${model.scale})` : ""} against the molecule before`;
  }
  const [label, change] = Object.entries(difference.probabilities).at(-1);
  return `probability of ${label} ${signed(100 * change)} points against the molecule before`;
}

function neighborFigure(near, model) {
  const figure = element("figure");
  if (near.svg) figure.append(drawing(near.svg));
  const value = model.kind === "numbers" ? number(near.value) : near.class;
  const caption = element("figcaption");
  caption.append(element("strong", value), ` ${near.name ?? `training molecule ${near.index + 1}`}, similarity ${near.similarity.toFixed(2)}`);
  figure.append(caption);
  return figure;
}

function groupTable(groups) {
  const table = element("table"), body = element("tbody");
  for (const { name, n, effect } of groups) {
    const line = element("tr");
    line.append(element("td", n > 1 ? `${name} (${n})` : name), element("td", signed(effect)));
    body.append(line);
  }
  table.append(body);
  return table;
}

function cardElement(card) {
  const { model } = card, made = element("article", null, { class: "compound" });
  const parts = element("div", null, { class: "parts" }), left = element("div"), right = element("div");
  const unit = model.unit ? ` ${model.unit}` : "";
  const value = model.kind === "numbers" ? `${number(card.predicted)}${unit}` : card.predicted;
  right.append(element("h2", model.name), element("p", value, { class: "value" }));
  right.append(element("p", model.kind === "numbers"
    ? `90 % interval ${number(card.lower_90)} to ${number(card.upper_90)}${unit}`
    : `probability ${percent(card.probability)}; wrong with a probability of ${percent(card.probability_wrong)}`));
  if (card.difference) right.append(element("p", differenceText(card), { class: "difference" }));
  if (card.in_training) right.append(element("p", "A training molecule has the same structure.", { class: "muted" }));
  right.append(element("p", card.domain, { class: card.in_domain === false ? "warning" : "domain" }));
  if (card.groups.length) right.append(element("h3", "Groups and what their atoms add"), groupTable(card.groups));
  if (card.svg) left.append(drawing(card.svg));
  const [against, toward] = model.kind === "numbers" ? ["lowers", "raises"] : [`against ${card.toward}`, `for ${card.toward}`];
  left.append(element("p", `Orange ${toward}, blue ${against} the prediction.`, { class: "muted" }));
  parts.append(left, right);
  const near = element("div", null, { class: "neighbors" });
  near.append(...card.neighbors.map((one) => neighborFigure(one, model)));
  made.append(parts, element("h3", "Nearest training molecules, with measured values"), near);
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
