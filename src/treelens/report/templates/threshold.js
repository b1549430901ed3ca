// The slider of thresholds: what each would find among held-out graphs, and what it would cost.

function startThreshold() {
  const slider = byId("threshold");
  if (!slider || !page.thresholds) return;
  const known = page.thresholds;
  const share = (part, whole) => (whole ? `${(100 * part / whole).toFixed(0)} %` : "–");

  function update() {
    const at = Number(slider.value), found = known.found[at], alarms = known.alarms[at];
    const missed = known.n_positive - found, rest = known.n_negative - alarms;
    const said = `${at} %`;
    slider.setAttribute("aria-valuetext", said);
    const texts = {
      at: said, found: found, missed: missed, alarms: alarms, rest: rest,
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
