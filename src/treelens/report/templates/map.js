// The map: points to click, to walk over by arrow keys, and to call by number.

function startMap() {
  const map = page.map, svg = byId("graph-map");
  const placeOf = new Map(map.index.map((index, place) => [index, place]));
  const size = map.index.length > 2000 ? 0.9 : map.index.length > 600 ? 1.2 : 1.7;
  const hiddenClasses = new Set();
  let onlyWrong = false, selected = null, zoom = 1, centre = [500, 500];

  const points = map.index.map((index, place) => {
    const shown = map.class ? map.class[place] : map.predicted[place];
    const wrong = map.class !== null && shown !== map.predicted[place];
    const names = ["point", `color-${shown % 8}`, wrong ? "wrong" : "", details.has(index) ? "" : "pale"];
    const point = element("path", {
      d: page.shapes[shown % page.shapes.length], class: names.filter(Boolean).join(" "), "data-place": place,
      transform: `translate(${map.x[place]} ${1000 - map.y[place]}) scale(${size})`,
    });
    element("title", {}, point, `Graph ${index}, class ${page.classes[shown]}`);
    return { node: point, wrong, code: shown };
  });
  // Wrong ones last, so that they lie on top.
  svg.append(...points.filter((p) => !p.wrong).map((p) => p.node), ...points.filter((p) => p.wrong).map((p) => p.node));
  const ring = element("circle", { class: "ring", r: 9 * size, visibility: "hidden" }, svg);

  const spanY = [Math.min(...map.y), Math.max(...map.y)], spanX = [Math.min(...map.x), Math.max(...map.x)];
  const full = [spanX[1] - spanX[0] + 80, Math.max(spanY[1] - spanY[0] + 80, 420)];
  const middle = [(spanX[0] + spanX[1]) / 2, 1000 - (spanY[0] + spanY[1]) / 2];
  centre = middle;

  function look() {
    const [width, height] = full.map((side) => side / zoom);
    if (zoom === 1) centre = middle;
    svg.setAttribute("viewBox", `${centre[0] - width / 2} ${centre[1] - height / 2} ${width} ${height}`);
  }

  function select(place) {
    selected = place;
    const [x, y] = [map.x[place], 1000 - map.y[place]];
    ring.setAttribute("cx", x);
    ring.setAttribute("cy", y);
    ring.setAttribute("visibility", "visible");
    if (zoom > 1) centre = [x, y];
    look();
    showGraph(place);
  }

  function visible(place) {
    return !points[place].node.hasAttribute("display");
  }

  function filter() {
    for (const point of points) {
      const hide = hiddenClasses.has(point.code) || (onlyWrong && !point.wrong);
      point.node.toggleAttribute("display", false);
      if (hide) point.node.setAttribute("display", "none");
    }
  }

  // The nearest point within 45 degrees of a direction.
  function neighbor(dx, dy) {
    if (selected === null) return points.findIndex((_, place) => visible(place));
    let best = -1, least = Infinity;
    for (let place = 0; place < points.length; place++) {
      if (place === selected || !visible(place)) continue;
      const x = map.x[place] - map.x[selected], y = map.y[selected] - map.y[place];
      const along = x * dx + y * dy, across = Math.abs(x * dy) + Math.abs(y * dx);
      if (along > 0 && along >= across && along + 2 * across < least) [best, least] = [place, along + 2 * across];
    }
    return best;
  }

  function zoomBy(factor) {
    zoom = Math.min(16, Math.max(1, zoom * factor));
    if (selected !== null) centre = [map.x[selected], 1000 - map.y[selected]];
    look();
  }

  svg.addEventListener("click", (event) => {
    const point = event.target.closest("[data-place]");
    if (point) select(Number(point.dataset.place));
  });
  const steps = new Map(Object.entries({ ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }));
  svg.addEventListener("keydown", (event) => {
    if (steps.has(event.key)) {
      const next = neighbor(...steps.get(event.key));
      if (next >= 0) select(next);
    } else if (event.key === "+" || event.key === "=") zoomBy(1.6);
    else if (event.key === "-") zoomBy(1 / 1.6);
    else return;
    event.preventDefault();
  });
  byId("zoom-in").addEventListener("click", () => zoomBy(1.6));
  byId("zoom-out").addEventListener("click", () => zoomBy(1 / 1.6));
  for (const button of document.querySelectorAll("[data-show-class]"))
    button.addEventListener("click", () => {
      const code = Number(button.dataset.showClass), shown = hiddenClasses.has(code);
      if (shown) hiddenClasses.delete(code); else hiddenClasses.add(code);
      button.setAttribute("aria-pressed", String(shown));
      filter();
    });
  const wrongButton = byId("only-wrong");
  if (wrongButton) wrongButton.addEventListener("click", () => {
    onlyWrong = !onlyWrong;
    wrongButton.setAttribute("aria-pressed", String(onlyWrong));
    filter();
  });

  function call(index) {
    const place = placeOf.get(index);
    if (place === undefined) return;
    select(place);
    byId("panel").focus({ preventScroll: true });
    byId("panel").scrollIntoView({ block: "nearest" });
  }
  byId("go-to").addEventListener("submit", (event) => {
    event.preventDefault();
    call(Number(byId("graph-number").value));
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest(".show-graph");
    if (button) call(Number(button.dataset.graph));
  });
  look();
  paintLegend();
}

if (page.map) startMap();
