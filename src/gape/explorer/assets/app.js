/* The page: its state, its controls, and how the pictures are linked. */

const $ = (selector, root = document) => root.querySelector(selector);
const content = JSON.parse($("#content").textContent);
const arrays = decodeArrays(content.arrays, $("#arrays").textContent);
const graph = new LiveGraph(content, arrays);
const camera = new Camera(), neighbours = new Neighbours(content.nodes, arrays.lines);
const MATRIX_TITLES = {
  adjacency: "A", random_walk: "D⁻¹A", random_walk_in: "AD⁻¹", symmetric: "D^-½ A D^-½", laplacian: "D − A",
  normalized_laplacian: "I − D^-½ A D^-½",
};
const READOUT_TITLES = { node: "into a node", closed: "closed runs", pair: "from a node" };
const MOST_ALIKE = 8; // nodes that are named beside the selected one

const state = {
  views: content.views.map((view) => ({ ...view })),
  columns: [content.views[0].column, content.views[1]?.column ?? 0],
  active: 0,
  hover: -1,
  selected: content.node ?? -1,
  distance: false,
  sorted: false,
  eigen: null, // { side, chosen }
  palette: "viridis",
};
const sides = [0, 1].map((side) => ({
  graph: new GraphPicture(...document.querySelectorAll(`.graph[data-side="${side}"] canvas`), content, arrays, camera, neighbours),
  heat: new HeatPicture($(`.heat[data-side="${side}"] canvas`)),
  result: null,
  version: 0,
}));
const spectrum = new SpectrumPicture($(".spectrum canvas"));
let table = colourTable(state.palette), spectrumHover = -1, brush = null;

const nameOf = (v) => (content.names ? content.names[v] : String(v));
const graphOf = (v) => (content.graphs ? ` of ${content.graphs.find(({ stop }) => v < stop).name}` : "");
// The encoding of a view is its place among those that Python computed; null is GAPE, computed here.
const isLive = (view) => view.encoding === null;
const titleOf = (view) => (isLive(view) ? "GAPE" : content.encodings[view.encoding].title);
const currentView = () => state.views[state.active];
const entryOf = (view) => graph.matrices.get(isLive(view) ? view.matrix : content.matrices[0].name);

/* ---------------------------------------------------------------- results */

function compute(side) {
  const view = state.views[side], target = sides[side];
  if (isLive(view)) target.result = graph.encode(view, Math.max(0, state.selected));
  else {
    const found = content.encodings[view.encoding], values = arrays[found.values];
    const certificate = found.status ? { status: found.status, radius: found.radius, residual: found.residual } : null;
    target.result = { values, rows: content.nodes, columns: values.length / content.nodes, certificate, settings: found.settings };
  }
  const { values, rows, columns } = target.result;
  // Runs from a node are heaviest in itself, which would leave one shade for all others.
  const apart = isLive(view) && view.readout === "pair" && rows > 1 ? Math.max(0, state.selected) : -1;
  target.result.ranges = Array.from({ length: columns }, (_, c) => {
    let low = Infinity, high = -Infinity;
    for (let v = 0; v < rows; v++) {
      const x = values[v * columns + c];
      if (v === apart) continue;
      if (x < low) low = x;
      if (x > high) high = x;
    }
    return { low, high, constant: !(high - low > CONSTANT_RATIO * Math.max(Math.abs(low), Math.abs(high))) };
  });
  state.columns[side] = Math.min(state.columns[side], columns - 1);
  target.version++;
}

function distances(side) {
  const { values, rows, columns } = sides[side].result, from = state.selected * columns, out = new Float64Array(rows);
  for (let v = 0; v < rows; v++) {
    let sum = 0;
    for (let c = 0, at = v * columns; c < columns; c++) sum += (values[at + c] - values[from + c]) ** 2;
    out[v] = Math.sqrt(sum);
  }
  return out;
}

const eigenvalue = (entry, j) => formattedComplex(...["values", "imaginary"].map((key) => graph.array(entry, key)?.[j] ?? 0));

/** What the nodes of a side are coloured by. */
function colouring(side) {
  const { result } = sides[side], column = state.columns[side];
  if (state.eigen?.side === side) {
    const { chosen } = state.eigen, entry = entryOf(state.views[side]);
    const title = chosen.length === 1 ? `eigenvector of δ = ${eigenvalue(entry, chosen[0])}` : `squares of ${chosen.length} eigenvectors`;
    const values = graph.eigenvector(entry, chosen);
    return { values, title, range: rangeOf(values) };
  }
  if (state.distance && state.selected >= 0) {
    const values = distances(side), range = rangeOf(values.filter((_, v) => v !== state.selected));
    // The selected node is brightest, whatever the distance of the next.
    return { values, title: `distance to ${nameOf(state.selected)}`, range: { ...range, flip: true } };
  }
  const values = new Float64Array(result.rows);
  for (let v = 0; v < result.rows; v++) values[v] = result.values[v * result.columns + column];
  const kind = isLive(state.views[side]) ? "state" : "feature";
  return { values, title: `${kind} ${column + 1} of ${result.columns}`, range: result.ranges[column] };
}

const rowOrder = (side) => {
  const { result } = sides[side], order = Uint32Array.from({ length: result.rows }, (_, i) => i);
  if (!state.sorted) return order;
  const column = state.columns[side];
  return order.sort((a, b) => result.values[a * result.columns + column] - result.values[b * result.columns + column] || a - b);
};

/* ---------------------------------------------------------------- drawing */

/** Draw everything that depends on results, columns or colours. */
function drawAll() {
  table = colourTable(state.palette);
  document.body.classList.toggle("two", state.views.length > 1);
  document.body.classList.toggle("wide", sides[0].graph.wide);
  for (const figure of document.querySelectorAll('[data-side="1"]')) figure.hidden = state.views.length < 2;
  state.views.forEach((view, side) => {
    const target = sides[side];
    const key = [target.version, state.columns[side], state.distance && state.selected, JSON.stringify(state.eigen), state.palette, document.documentElement.dataset.theme].join();
    if (key !== target.key) recolour(side, key);
    const order = [target.version, state.sorted && state.columns[side]].join();
    if (order !== target.orderKey) { target.orderKey = order; target.order = rowOrder(side); target.heat.places = null; }
    const heat = $(`.heat[data-side="${side}"] figcaption`);
    heat.replaceChildren(bold(`${content.nodes.toLocaleString("en")} nodes × ${target.result.columns}`), quiet(state.views.length > 1 ? "" : state.sorted ? "sorted by the feature (s)" : "each column in its own range"));
    $(`.heat[data-side="${side}"] canvas`).ariaLabel = `Heat map of ${titleOf(view)}`;
  });
  drawLinked();
  drawSpectrum();
  showCertificate();
  showNode();
}

function recolour(side, key) {
  const target = sides[side], { values, title, range } = colouring(side);
  target.key = key;
  target.shades = Uint8Array.from(values, (x) => (range.flip ? 255 - shadeOf(x, range) : shadeOf(x, range)));
  caption($(`.graph[data-side="${side}"] figcaption`), side, title, range);
  $(`.graph[data-side="${side}"] canvas`).ariaLabel = `Graph coloured by ${title}`;
}

/** Draw graphs and heat maps with what is hovered and selected: cheap, nothing is computed. */
function drawLinked() {
  const { names } = content, { hover, selected } = state;
  state.views.forEach((_, side) => {
    const { graph: picture, heat, result, shades, key, order, orderKey } = sides[side];
    picture.draw({ shades, table, hover, selected, key });
    heat.draw({ result, order, column: state.columns[side], table, hover, selected, key: `${key};${orderKey}`, names });
  });
}

/** Least and largest of some numbers, once if they agree. */
function span(numbers) {
  const low = Math.min(...numbers), high = Math.max(...numbers);
  return high - low <= 1e-9 * high ? formatted(high) : formattedRange(low, high).join(" to ");
}

function drawSpectrum() {
  const view = currentView(), entry = entryOf(view), live = isLive(view);
  let real = graph.array(entry, "values") ?? new Float64Array(0), imaginary = graph.array(entry, "imaginary"), { radius } = entry;
  const certificate = sides[state.active].result.certificate, radii = graph.radii(entry);
  // A large graph's page has one automaton, that of its first encoding.
  const own = !content.live && view.encoding === 0 && certificate, alike = radii.every((each) => Math.abs(each - radius) <= 1e-9 * radius);
  let gamma = live ? certificate.gammas[0] : own && alike ? certificate.radius / (radius || 1) : 0;
  // Graphs of other radii have another γ each: divided by ρ(A), they share the circle of poles.
  const divided = content.live && !alike;
  if (divided) {
    const graphOf = entry.basis ? graph.graphOf : graph.schurForm(entry).graphOf, scaled = (x, j) => x / (radii[graphOf[j]] || 1);
    [real, imaginary] = [real.map(scaled), imaginary && imaginary.map(scaled)];
    [radius, gamma] = [1, live ? view.damping : 0];
  }
  const angles = gamma > 0 ? machineOf(view).angles : null;
  const chosen = state.eigen?.side === state.active ? state.eigen.chosen : [];
  spectrum.draw({ real, imaginary, radius, gamma, angles, chosen, brush, hover: spectrumHover });
  const which = content.live ? "" : `, ${real.length} of largest modulus`;
  const name = divided ? `${MATRIX_TITLES[entry.name]}, divided by ρ` : MATRIX_TITLES[entry.name];
  $(".spectrum figcaption").replaceChildren(bold(`Spectrum of ${name}${which}`), quiet(`ρ = ${span(radii)}`));
  $(".spectrum canvas").ariaLabel = `Eigenvalues of ${entry.name} in the complex plane`;
}

const machineOf = (view) => graph.machine(view, graph.labels(view).count);
const element = (tag, text, name = "") => Object.assign(document.createElement(tag), { textContent: text, className: name });
const bold = (text) => element("span", text), quiet = (text) => element("span", text, "quiet");

function caption(target, side, title, range) {
  const view = state.views[side], legend = element("span", "", "legend"), bar = element("i", "");
  const details = [view.automaton === "sinusoidal" && "sinusoidal", { closed: "closed runs", pair: "runs from a node" }[view.readout], view.labels !== "one" && `${view.labels} labels`];
  const name = isLive(view) ? ["GAPE", ...details.filter(Boolean)].join(", ") : titleOf(view);
  const stops = [0, 32, 64, 96, 128, 160, 192, 224, 255].map((i) => table.css[range.flip ? 255 - i : i]);
  bar.style.background = range.constant ? table.css[128] : `linear-gradient(90deg, ${stops.join(",")})`;
  if (range.constant) legend.append(bar, `all ${formatted(range.low)}`);
  else { const [low, high] = formattedRange(range.low, range.high); legend.append(low, bar, high); }
  target.replaceChildren(bold(name), quiet(title), legend);
}

/* ---------------------------------------------------------------- words */

function showCertificate() {
  const view = currentView(), { certificate, settings } = sides[state.active].result, box = $("#certificate");
  const live = isLive(view), entry = entryOf(view), facts = [];
  const status = certificate && content.status[certificate.status];
  box.dataset.status = certificate?.status ?? "";
  box.dataset.tone = status?.tone ?? "none";
  $("h2", box).textContent = status ? status.title : titleOf(view);
  const words = status ? status.words : settings;
  $(".words", box).textContent = words ? words[0].toUpperCase() + words.slice(1) + (status ? "." : "") : "Features given as numbers.";
  if (live) facts.push(["γ", span(certificate.gammas)], ["ρ(A)", span(graph.radii(entry))]);
  if (certificate) facts.push(["ρ(μ)ρ(A)", formatted(certificate.radius)]);
  if (live) facts.push(["min |1 − λδ|", formatted(certificate.separation)]);
  if (certificate && certificate.residual !== null) facts.push(["residual", certificate.residual ? certificate.residual.toExponential(1) : "0"]);
  const other = agreement();
  if (other !== null) facts.push(["max |first − second|", formatted(other)]);
  $("dl", box).replaceChildren(...facts.flatMap(([name, value]) => [element("dt", name), element("dd", value)]));
  $("#runs").hidden = !live;
  if (live) drawRuns($("#runs canvas"), graph.runWeights(entry, certificate.gammas));
  if (live) $("#damping-value").textContent = entry.radius > 0 ? `γρ(A) = ${formatted(view.damping)}` : `γ = ${formatted(view.damping)}`;
}

/** The largest difference between the two sides if they have as many columns. */
function agreement() {
  if (state.views.length < 2 || sides[0].result.columns !== sides[1].result.columns) return null;
  const a = sides[0].result.values, b = sides[1].result.values;
  let largest = 0;
  for (let i = 0; i < a.length; i++) largest = Math.max(largest, Math.abs(a[i] - b[i]));
  return largest;
}

function showNode() {
  const v = state.selected, box = $("#node"), list = $(".alike", box);
  $("#distance").checked = state.distance;
  $("#distance").disabled = v < 0;
  if (v < 0) {
    $("h2", box).textContent = "No node selected";
    list.replaceChildren("Select a node to see which nodes look like it.");
    return;
  }
  const degree = neighbours.of(v).length;
  $("h2", box).textContent = `Node ${nameOf(v)}${graphOf(v)}, ${degree} neighbour${degree === 1 ? "" : "s"}`;
  const all = distances(state.active), nearest = [];
  for (let u = 0; u < all.length; u++) {
    if (u === v || (nearest.length === MOST_ALIKE && all[u] >= all[nearest[MOST_ALIKE - 1]])) continue;
    let place = nearest.length;
    while (place && all[nearest[place - 1]] > all[u]) place--;
    nearest.splice(place, 0, u);
    if (nearest.length > MOST_ALIKE) nearest.pop();
  }
  list.replaceChildren("Nodes that look like it, with the distance of their rows:", ...nearest.map((u) => {
    const button = element("button", `${nameOf(u)}${content.graphs ? graphOf(u).replace(" of", ",") : ""} · ${all[u] < 1e-9 ? "0" : formatted(all[u])}`);
    button.type = "button";
    button.dataset.node = u;
    return button;
  }));
}

/* ---------------------------------------------------------------- changes */

const pending = new Set();
/** Do this once in the next frame, however many events ask for it before. */
function soon(work) {
  if (!pending.size) requestAnimationFrame(() => { const works = [...pending]; pending.clear(); for (const each of works) each(); });
  pending.add(work);
}

const refreshActive = () => refresh();

function refresh(which = [state.active]) {
  for (const side of which) compute(side);
  drawAll();
}

function change(settings) {
  const view = currentView();
  Object.assign(view, settings);
  if (view.automaton === "sinusoidal") {
    if (view.states % 2) view.states = Math.min(content.max_states, view.states + 1);
    if (graph.labels(view).count !== 2) view.automaton = "random";
  }
  if (view.readout === "pair" && state.selected < 0) state.selected = 0;
  if (state.eigen?.side === state.active && ("matrix" in settings || "encoding" in settings)) state.eigen = null;
  showControls();
  soon(refreshActive);
}

function select(node) {
  state.selected = node;
  const pairs = state.views.flatMap((view, side) => (isLive(view) && view.readout === "pair" ? [side] : []));
  for (const side of pairs) compute(side);
  drawAll();
}

function hover(node) {
  if (node === state.hover) return;
  state.hover = node;
  drawLinked();
}

function selectColumn(side, column) {
  const columns = sides.map(({ result }) => result?.columns);
  state.columns[side] = column;
  if (state.views.length > 1 && columns[0] === columns[1]) state.columns[1 - side] = column;
  state.eigen = null;
  state.distance = false;
  state.active = side;
  showControls();
  drawAll();
}

function compare() {
  if (state.views.length > 1) state.views.length = 1;
  else {
    const [first] = state.views, other = content.encodings.findIndex((_, place) => place !== first.encoding);
    state.views.push({ ...first, encoding: other < 0 ? first.encoding : other });
  }
  state.active = state.views.length - 1;
  if (state.eigen?.side === 1) state.eigen = null;
  if (state.views.length > 1) compute(1);
  showControls();
  drawAll();
}

function toggleTheme() {
  const root = document.documentElement, dark = getComputedStyle(root).colorScheme === "dark";
  root.dataset.theme = dark ? "light" : "dark";
  drawAll();
}

function tip(event, text) {
  const box = $("#tip");
  box.hidden = !text;
  if (!text) return;
  box.textContent = text;
  box.style.left = `${Math.min(event.clientX + 14, innerWidth - box.offsetWidth - 8)}px`;
  box.style.top = `${Math.min(event.clientY + 14, innerHeight - box.offsetHeight - 8)}px`;
}

/* ---------------------------------------------------------------- controls */

const options = (select, entries) => select.replaceChildren(...entries.map(([value, text]) => Object.assign(new Option(text, value))));

function showControls() {
  const view = currentView(), live = isLive(view);
  for (const tab of document.querySelectorAll("#sides [role=tab]")) {
    tab.hidden = state.views.length < 2;
    tab.ariaSelected = String(+tab.dataset.side === state.active);
  }
  $("#compare").textContent = state.views.length > 1 ? "Show one" : "Compare two";
  $("#encoding").value = view.encoding ?? "live";
  $("#live").hidden = !live;
  if (!live) return;
  $("#damping").value = Math.log10(view.damping);
  $("#limit").textContent = graph.matrices.get(view.matrix).radius > 0 ? "γρ(A) = 1" : "γ = 1";
  $("#states").value = $("#states-value").value = view.states;
  $("#seed").value = $("#seed-value").value = view.seed;
  for (const key of ["matrix", "readout", "labels", "automaton"]) $(`#${key}`).value = view[key];
  $("#seed").disabled = view.automaton === "sinusoidal" && view.labels !== "random";
  $("#automaton").options[1].disabled = graph.labels(view).count !== 2;
}

function prepareControls() {
  $("#title").textContent = content.title;
  const kinds = [content.directed ? "directed" : "", content.weighted ? "weighted" : ""].filter(Boolean).join(", ");
  const graphs = content.graphs ? `${content.graphs.length} graphs, ` : "";
  $("#facts").textContent = `${graphs}${content.nodes.toLocaleString("en")} nodes, ${content.edges.toLocaleString("en")} edges${kinds ? `, ${kinds}` : ""}`;
  const notes = [content.text, ...content.notes.map((note) => `${note}.`)];
  if (!content.live) notes.push(`Encodings were computed by Python; sliders work on graphs of up to ${content.live_limit} nodes.`);
  $("#text").textContent = notes.filter(Boolean).join(" ");
  options($("#encoding"), [...(content.live ? [["live", "GAPE, live"]] : []), ...content.encodings.map(({ title }, place) => [place, title])]);
  options($("#palette"), Object.keys(PALETTES).map((name) => [name, name]));
  options($("#matrix"), content.matrices.map(({ name }) => [name, name.replaceAll("_", " ")]));
  options($("#readout"), Object.entries(READOUT_TITLES).filter(([name]) => name !== "closed" || !content.directed));
  options($("#labels"), [["one", "one"], ...(content.labels.given ? [["given", `given (${content.labels.given.count})`]] : []), ...(content.labels.random ? [["random", "random (20)"]] : [])]);
  $("#states").max = content.max_states;
  $("#seed").max = content.max_seed;
  $("#damping").addEventListener("input", (event) => change({ damping: 10 ** +event.target.value }));
  for (const key of ["states", "seed"]) $(`#${key}`).addEventListener("input", (event) => change({ [key]: +event.target.value }));
  $("#encoding").addEventListener("change", ({ target }) => change({ encoding: target.value === "live" ? null : +target.value }));
  for (const key of ["matrix", "readout", "labels", "automaton"]) $(`#${key}`).addEventListener("change", (event) => change({ [key]: event.target.value }));
  $("#palette").addEventListener("change", (event) => { state.palette = event.target.value; drawAll(); });
  $("#theme").addEventListener("click", toggleTheme);
  $("#compare").addEventListener("click", compare);
  $("#help-button").addEventListener("click", () => $("#help").showModal());
  for (const tab of document.querySelectorAll("#sides [role=tab]")) tab.addEventListener("click", () => { state.active = +tab.dataset.side; showControls(); drawAll(); });
  $("#distance").addEventListener("change", (event) => { state.distance = event.target.checked; state.eigen = null; drawAll(); });
  $("#node .alike").addEventListener("click", (event) => { if (event.target.dataset.node) select(+event.target.dataset.node); });
  $("#node .alike").addEventListener("pointerover", (event) => hover(event.target.dataset.node ? +event.target.dataset.node : -1));
}

/* ---------------------------------------------------------------- pointers and keys */

const pointIn = (event, canvas) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };

function listenGraph(side) {
  const { graph: picture } = sides[side], { canvas } = picture, fingers = new Map();
  let moved = false;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, pointIn(event, canvas));
    if (fingers.size === 1) moved = false;
  });
  canvas.addEventListener("pointermove", (event) => {
    const at = pointIn(event, canvas), before = fingers.get(event.pointerId);
    if (!before) {
      const node = picture.nodeAt(...at);
      hover(node);
      tip(event, node < 0 ? "" : describe(side, node));
      return;
    }
    if (fingers.size === 2) {
      const other = [...fingers].find(([id]) => id !== event.pointerId)[1];
      const spread = (p) => Math.hypot(p[0] - other[0], p[1] - other[1]);
      camera.magnify(spread(at) / Math.max(1, spread(before)), (at[0] + other[0]) / 2 - canvas.clientWidth / 2, (at[1] + other[1]) / 2 - canvas.clientHeight / 2);
      moved = true;
    } else if (moved || Math.hypot(at[0] - before[0], at[1] - before[1]) > 4) {
      camera.x += at[0] - before[0];
      camera.y += at[1] - before[1];
      moved = true;
    } else return;
    fingers.set(event.pointerId, at);
    soon(drawLinked);
  });
  const up = (event) => {
    if (fingers.delete(event.pointerId) && !moved && event.type === "pointerup") {
      const node = picture.nodeAt(...pointIn(event, canvas));
      state.active = Math.min(side, state.views.length - 1);
      showControls();
      select(node);
    }
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointerleave", (event) => { hover(-1); tip(event, ""); });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const [x, y] = pointIn(event, canvas);
    camera.magnify(Math.exp(-event.deltaY * 0.0015), x - canvas.clientWidth / 2, y - canvas.clientHeight / 2);
    soon(drawLinked);
  }, { passive: false });
}

const describe = (side, node, column = state.columns[side]) => {
  const { values, columns } = sides[side].result;
  return `node ${nameOf(node)}${graphOf(node)}: ${formatted(values[node * columns + column])} in ${column + 1}`;
};

function listenHeat(side) {
  const { heat } = sides[side], { canvas } = heat;
  canvas.addEventListener("pointermove", (event) => {
    const { node, column } = heat.cellAt(...pointIn(event, canvas));
    hover(node);
    tip(event, node < 0 || column < 0 ? "" : describe(side, node, column));
  });
  canvas.addEventListener("pointerleave", (event) => { hover(-1); tip(event, ""); });
  canvas.addEventListener("click", (event) => {
    const { node, column } = heat.cellAt(...pointIn(event, canvas));
    if (event.shiftKey && node >= 0) select(node);
    else if (column >= 0) selectColumn(side, column);
  });
}

function listenSpectrum() {
  const { canvas } = spectrum;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    const [x, y] = pointIn(event, canvas);
    brush = [x, y, x, y];
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = pointIn(event, canvas);
    if (brush) brush.splice(2, 2, x, y);
    const found = spectrum.at(x, y);
    spectrumHover = found ? found.members[0] : -1;
    tip(event, found ? `δ = ${eigenvalue(entryOf(currentView()), found.members[0])}${found.members.length > 1 ? `, ${found.members.length} times` : ""}` : "");
    soon(drawSpectrum);
  });
  canvas.addEventListener("pointerup", (event) => {
    const drawn = brush;
    brush = null;
    if (!drawn) return;
    const wide = Math.hypot(drawn[2] - drawn[0], drawn[3] - drawn[1]) > 5;
    showEigenvectors(wide ? spectrum.within(drawn) : spectrum.at(...pointIn(event, canvas))?.members ?? []);
  });
  canvas.addEventListener("pointercancel", () => { brush = null; drawSpectrum(); });
  canvas.addEventListener("pointerleave", (event) => { spectrumHover = -1; tip(event, ""); drawSpectrum(); });
}

/** Colour the graph by eigenvectors, given by their numbers; those that the page does not carry are left out. */
function showEigenvectors(chosen) {
  const entry = entryOf(currentView()), width = entry.eigenvectors ? arrays[entry.eigenvectors].length / content.nodes : Infinity;
  const known = content.live ? chosen : chosen.filter((j) => j < width);
  state.eigen = known.length ? { side: state.active, chosen: known } : null;
  state.distance = false;
  drawAll();
}

const KEYS = {
  ArrowLeft: () => step(-1), ArrowRight: () => step(1),
  ArrowUp: () => select((state.selected > 0 ? state.selected : content.nodes) - 1),
  ArrowDown: () => select((state.selected + 1) % content.nodes),
  "[": () => isLive(currentView()) && change({ damping: Math.max(0.01, currentView().damping / 1.05) }),
  "]": () => isLive(currentView()) && change({ damping: Math.min(10, currentView().damping * 1.05) }),
  d: () => { if (state.selected >= 0) { state.distance = !state.distance; state.eigen = null; drawAll(); } },
  s: () => { state.sorted = !state.sorted; drawAll(); },
  c: compare,
  t: toggleTheme,
  "+": () => { camera.magnify(1.25); drawLinked(); },
  "-": () => { camera.magnify(0.8); drawLinked(); },
  0: () => { camera.reset(); drawLinked(); },
  "?": () => $("#help").showModal(),
  Escape: () => { state.eigen = null; state.distance = false; camera.reset(); select(-1); },
};

function step(by) {
  const { columns } = sides[state.active].result;
  selectColumn(state.active, (state.columns[state.active] + by + columns) % columns);
}

/** Keys that a focused slider or list uses itself. */
function ownKey({ target, key }) {
  if (target.tagName === "SELECT") return key.startsWith("Arrow") || /^[a-z0-9+-]$/i.test(key);
  return target.type === "range" && key.startsWith("Arrow");
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $("#help").open || ownKey(event)) return;
  if (event.key === "Escape" && /^(INPUT|SELECT)$/.test(event.target.tagName)) { event.target.blur(); return; }
  const action = KEYS[event.key];
  if (action) { event.preventDefault(); action(); }
});

prepareControls();
sides.forEach((_, side) => { listenGraph(side); listenHeat(side); });
listenSpectrum();
showControls();
refresh(state.views.map((_, side) => side));
new ResizeObserver(() => soon(drawAll)).observe($("main"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { for (const side of sides) side.version++; drawAll(); });
if (content.live) {
  // The page draws automata as PyTorch does; a version of PyTorch that draws others is noticed here.
  const { states, seed } = content.views[0], own = randomAutomaton(states, 1, seed).initial;
  if (content.drawn.some((x, i) => Math.abs(x - own[i]) > 1e-9)) $("#text").append(" This version of PyTorch draws other automata than this page: seeds do not agree.");
}
// For tests, and for the curious.
window.gapeExplorer = { content, state, sides, graph, select, change, selectColumn, showEigenvectors, spectrum, camera, keys: KEYS, ready: performance.now() };
