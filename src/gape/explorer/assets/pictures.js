/* Pictures on canvases: the graph, the heat map, the spectrum, and the weight of runs by length. */

const anchors = (text) => text.match(/.{6}/g).map((hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)));
// Sequential palettes of even lightness and a diverging one; all of them work without colour vision.
const PALETTES = {
  viridis: anchors("44015448186a472d7b4240863b528b33638d2c728e26828e21918c1fa08828ae803fbc735ec96284d44baddc30d8e219fde725"),
  cividis: anchors("00224e002e6a1a386f32436d434e6c535a6d61656f6f70737d7c788c88789b9476aba072bcae6ccdbb63dec958f0d846fee838"),
  "blue–orange": anchors("12376b1f5c9c4a86bf8bb3d8c9dcebf3f0eaf3d3a5e8a95bcc7a26974f116b3409"),
};
// Columns whose values agree up to this, relative to the largest, are drawn as constant: the rest is rounding.
const CONSTANT_RATIO = 1e-6;
// Larger graphs are drawn pixel by pixel, with edges as a density.
const MAX_VECTOR_NODES = 3000, MAX_VECTOR_EDGES = 8000;

/** 256 colours of a palette, as [r, g, b] and as packed pixels. */
function colourTable(name) {
  const stops = PALETTES[name], css = [], packed = new Uint32Array(256);
  for (let i = 0; i < 256; i++) {
    const at = (i / 255) * (stops.length - 1), low = Math.min(Math.floor(at), stops.length - 2), part = at - low;
    const [r, g, b] = stops[low].map((x, c) => Math.round(x + part * (stops[low + 1][c] - x)));
    css.push(`rgb(${r},${g},${b})`);
    packed[i] = (255 << 24) | (b << 16) | (g << 8) | r;
  }
  return { css, packed };
}

/** Least and largest value; constant if they agree up to rounding. */
function rangeOf(values) {
  let low = Infinity, high = -Infinity;
  for (const x of values) { if (x < low) low = x; if (x > high) high = x; }
  const constant = !(high - low > CONSTANT_RATIO * Math.max(Math.abs(low), Math.abs(high)));
  return { low, high, constant };
}

const shadeOf = (x, { low, high, constant }) => (constant ? 128 : Math.max(0, Math.min(255, Math.round(((x - low) / (high - low)) * 255))));

/** Fit a canvas to its box and the screen's resolution; return its context and size in CSS pixels. */
function fitted(canvas) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2), width = canvas.clientWidth, height = canvas.clientHeight;
  const w = Math.max(1, Math.round(width * ratio)), h = Math.max(1, Math.round(height * ratio));
  if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { context, width, height, ratio };
}

const themed = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const formatted = (x) => (x === 0 ? "0" : Math.abs(x) >= 1e4 || Math.abs(x) < 1e-3 ? x.toExponential(1).replace("e+", "e") : String(+x.toPrecision(3)));

const formattedComplex = (x, y) => (y ? `${formatted(x)} ${y < 0 ? "−" : "+"} ${formatted(Math.abs(y))}i` : formatted(x));

/** Two numbers in as many digits as it takes to tell them apart. */
function formattedRange(low, high) {
  for (let digits = 3; digits < 12; digits++) {
    const [a, b] = [low, high].map((x) => String(+x.toPrecision(digits)));
    if (a !== b) return digits === 3 ? [formatted(low), formatted(high)] : [a, b];
  }
  return [formatted(low), formatted(high)];
}

/** The neighbours of each node, each once, whichever way the edges of a drawing point. */
class Neighbours {
  constructor(n, lines) {
    const count = lines.length / 2;
    this.start = new Uint32Array(n + 1);
    for (const v of lines) this.start[v + 1]++;
    for (let v = 0; v < n; v++) this.start[v + 1] += this.start[v];
    this.list = new Uint32Array(lines.length);
    const at = this.start.slice();
    for (let e = 0; e < count; e++) {
      this.list[at[lines[e]]++] = lines[count + e];
      this.list[at[lines[count + e]]++] = lines[e];
    }
  }
  of(v) { return [...new Set(this.list.subarray(this.start[v], this.start[v + 1]))]; }
}

/** The view of a drawing: zoom and shift, shared by both graphs. */
class Camera {
  constructor() { this.reset(); }
  reset() { this.zoom = 1; this.x = 0; this.y = 0; }
  /** Zoom about a point of the picture, given relative to its centre. */
  magnify(factor, x = 0, y = 0) {
    const zoom = Math.max(0.5, Math.min(60, this.zoom * factor)), change = zoom / this.zoom;
    this.x = x - (x - this.x) * change;
    this.y = y - (y - this.y) * change;
    this.zoom = zoom;
  }
}

/** The graph on one canvas, and what is hovered or selected on another above it: a selection draws no edges but its own. */
class GraphPicture {
  constructor(canvas, overlay, content, arrays, camera, neighbours) {
    Object.assign(this, { canvas, overlay, content, camera, neighbours });
    this.n = content.nodes;
    this.lines = arrays.lines;
    this.places = arrays.positions;
    this.vector = this.n <= MAX_VECTOR_NODES && this.lines.length / 2 <= MAX_VECTOR_EDGES;
    this.drawn = 0; // how often all edges and nodes were drawn
    this.x = new Float32Array(this.n);
    this.y = new Float32Array(this.n);
    this.key = "";
    let right = 1, bottom = 1;
    for (let v = 0; v < this.n; v++) {
      right = Math.max(right, this.places[2 * v]);
      bottom = Math.max(bottom, this.places[2 * v + 1]);
    }
    this.extent = [right, bottom];
    this.wide = right > 1.5 * bottom;
    this.named = content.names && this.n <= 60;
  }

  project(width, height) {
    const margin = 22, [right, bottom] = this.extent, { camera } = this;
    const top = this.content.graphs ? 18 : 0;
    const scale = Math.min((width - 2 * margin) / right, (height - 2 * margin - top) / bottom) * camera.zoom;
    for (let v = 0; v < this.n; v++) {
      this.x[v] = width / 2 + camera.x + (this.places[2 * v] - right / 2) * scale;
      this.y[v] = (height + top) / 2 + camera.y + (this.places[2 * v + 1] - bottom / 2) * scale;
    }
    const count = this.lines.length / 2, lengths = [];
    for (let e = 0; e < count; e += Math.max(1, Math.floor(count / 500))) {
      lengths.push(Math.hypot(this.x[this.lines[e]] - this.x[this.lines[count + e]], this.y[this.lines[e]] - this.y[this.lines[count + e]]));
    }
    lengths.sort((a, b) => a - b);
    const spacing = Math.sqrt((width * height) / this.n);
    // Short edges stay visible: nine of ten are longer than the discs of their ends.
    const typical = Math.min(lengths.length ? lengths[Math.floor(lengths.length / 10)] : spacing, spacing);
    this.radius = Math.max(this.vector ? 3 : 1, Math.min(this.named ? 13 : 11, 0.34 * typical, 0.17 * spacing));
  }

  /** Draw edges and nodes in the given shades 0…255. `key` changes whenever the picture must be drawn anew. */
  draw({ shades, table, hover, selected, key }) {
    const { context, width, height, ratio } = fitted(this.canvas);
    if (width < 20 || height < 20) return;
    const view = [width, height, ratio, this.camera.zoom, this.camera.x, this.camera.y].join();
    if (view !== this.view) { this.view = view; this.project(width, height); this.key = ""; this.density = null; }
    if (key !== this.key) {
      this.key = key;
      this.drawn++;
      context.clearRect(0, 0, width, height);
      if (this.vector) this.strokes(context, shades, table); else this.pixels(context, shades, table, ratio);
      this.titles(context);
    }
    const { context: above } = fitted(this.overlay);
    above.clearRect(0, 0, width, height);
    for (const v of new Set([selected, hover])) if (v >= 0) this.mark(above, v, shades, table, v === selected);
  }

  strokes(context, shades, table) {
    const { lines, x, y, radius } = this, count = lines.length / 2;
    context.strokeStyle = context.fillStyle = themed("--edge");
    const crowd = Math.min(1, 900 / Math.max(1, count));
    context.globalAlpha = 0.3 + 0.45 * crowd;
    context.lineWidth = Math.max(0.6, Math.min(1.8, radius * 0.22));
    context.beginPath();
    for (let e = 0; e < count; e++) {
      const a = lines[e], b = lines[count + e];
      if (!this.content.directed) { context.moveTo(x[a], y[a]); context.lineTo(x[b], y[b]); continue; }
      // A wedge that narrows towards its target.
      const dx = x[b] - x[a], dy = y[b] - y[a], length = Math.hypot(dx, dy) || 1, w = Math.min(2.4, radius * 0.4);
      const px = (-dy / length) * w, py = (dx / length) * w;
      context.moveTo(x[a] + px, y[a] + py); context.lineTo(x[b], y[b]); context.lineTo(x[a] - px, y[a] - py); context.closePath();
    }
    if (this.content.directed) context.fill(); else context.stroke();
    context.globalAlpha = 1;
    context.strokeStyle = themed("--outline");
    context.lineWidth = Math.min(1.5, radius * 0.22);
    for (let v = 0; v < this.n; v++) {
      context.beginPath();
      context.arc(x[v], y[v], radius, 0, 7);
      context.fillStyle = table.css[shades[v]];
      context.fill();
      context.stroke();
    }
    for (let v = 0; v < this.n; v++) this.letters(context, v, shades, table);
  }

  /** Write the name of a node on its disc if it fits. */
  letters(context, v, shades, table) {
    if (!this.named || this.radius <= 7) return;
    const [r, g, b] = table.css[shades[v]].match(/\d+/g);
    context.font = `600 ${Math.round(this.radius * 0.85)}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillStyle = 0.3 * r + 0.59 * g + 0.11 * b > 140 ? "#111" : "#fff";
    context.fillText(this.content.names[v].split(" ")[0].slice(0, 3), this.x[v], this.y[v] + 0.5);
    context.textBaseline = "alphabetic";
  }

  /** Edges as a density on a logarithmic scale, nodes as small squares. */
  pixels(context, shades, table, ratio) {
    const { width: w, height: h } = this.canvas, { lines, x, y } = this, count = lines.length / 2;
    if (!this.density) {
      const density = (this.density = new Uint32Array(w * h));
      for (let e = 0; e < count; e++) {
        const ax = x[lines[e]] * ratio, ay = y[lines[e]] * ratio, bx = x[lines[count + e]] * ratio, by = y[lines[count + e]] * ratio;
        if ((ax < 0 && bx < 0) || (ay < 0 && by < 0) || (ax >= w && bx >= w) || (ay >= h && by >= h)) continue;
        const steps = Math.max(1, Math.ceil(Math.max(Math.abs(bx - ax), Math.abs(by - ay))));
        const dx = (bx - ax) / steps, dy = (by - ay) / steps;
        for (let i = 0, px = ax, py = ay; i < steps; i++, px += dx, py += dy) {
          if (px >= 0 && py >= 0 && px < w && py < h) density[(py | 0) * w + (px | 0)]++;
        }
      }
      let top = 1;
      for (let i = 0; i < density.length; i += 7) if (density[i] > top) top = density[i];
      this.top = Math.log1p(top);
    }
    const image = context.createImageData(w, h), pixels = new Uint32Array(image.data.buffer);
    const [r, g, b] = themed("--edge").match(/[0-9a-f]{2}/gi).map((hex) => parseInt(hex, 16));
    const colour = (b << 16) | (g << 8) | r, alphas = new Uint32Array(1024);
    for (let i = 0; i < 1024; i++) alphas[i] = ((Math.min(150, (200 * Math.log1p(i)) / (this.top + 1)) | 0) << 24) | colour;
    for (let i = 0; i < pixels.length; i++) if (this.density[i]) pixels[i] = alphas[Math.min(1023, this.density[i])];
    const half = Math.max(0.5, this.radius * ratio);
    for (let v = 0; v < this.n; v++) {
      const left = Math.max(0, Math.round(x[v] * ratio - half)), right = Math.min(w, Math.round(x[v] * ratio + half));
      const first = Math.max(0, Math.round(y[v] * ratio - half)), last = Math.min(h, Math.round(y[v] * ratio + half));
      const pixel = table.packed[shades[v]];
      for (let py = first; py < last; py++) pixels.fill(pixel, py * w + left, Math.max(py * w + left, py * w + right));
    }
    context.putImageData(image, 0, 0);
  }

  titles(context) {
    if (!this.content.graphs || this.content.graphs.length > 12) return;
    context.font = "600 12px system-ui, sans-serif";
    context.textAlign = "center";
    context.fillStyle = themed("--soft");
    for (const { name, start, stop } of this.content.graphs) {
      let left = Infinity, right = -Infinity, top = Infinity;
      for (let v = start; v < stop; v++) { left = Math.min(left, this.x[v]); right = Math.max(right, this.x[v]); top = Math.min(top, this.y[v]); }
      if (stop > start) context.fillText(name, (left + right) / 2, top - this.radius - 8);
    }
  }

  mark(context, v, shades, table, selected) {
    const { x, y } = this, radius = Math.max(4, this.radius), near = this.neighbours.of(v).slice(0, 400);
    context.strokeStyle = themed("--accent");
    context.lineWidth = 1.6;
    context.globalAlpha = 0.8;
    context.beginPath();
    for (const u of near) { context.moveTo(x[v], y[v]); context.lineTo(x[u], y[u]); }
    context.stroke();
    context.globalAlpha = 1;
    context.lineWidth = 1.4;
    context.strokeStyle = themed("--outline");
    for (const u of near) this.disc(context, u, this.vector ? this.radius : 3, shades, table);
    context.lineWidth = selected ? 3 : 2;
    context.strokeStyle = themed("--ink");
    this.disc(context, v, radius + (selected ? 3 : 2), shades, table);
  }

  disc(context, v, radius, shades, table) {
    context.beginPath();
    context.arc(this.x[v], this.y[v], radius, 0, 7);
    context.fillStyle = table.css[shades[v]];
    context.fill();
    context.stroke();
    this.letters(context, v, shades, table);
  }

  /** The node nearest to a point, within reach of a finger; -1 if there is none. */
  nodeAt(px, py) {
    let best = -1, least = Math.max(14, this.radius + 4) ** 2;
    for (let v = 0; v < this.n; v++) {
      const square = (this.x[v] - px) ** 2 + (this.y[v] - py) ** 2;
      if (square < least) { least = square; best = v; }
    }
    return best;
  }
}

/** The n × k heat map, each column in its own range; with more rows than pixels, one row per pixel is drawn. */
class HeatPicture {
  constructor(canvas) { this.canvas = canvas; this.base = document.createElement("canvas"); this.key = ""; }

  draw({ result, order, column, table, hover, selected, key, names }) {
    const { context, width, height, ratio } = fitted(this.canvas), top = 16;
    if (width < 20 || height < 40) return;
    const { rows, columns } = result;
    const shown = Math.min(rows, Math.max(1, Math.round((height - top) * ratio)));
    Object.assign(this, { top, width, height, rows, columns, order });
    const full = `${key},${shown}`;
    if (full !== this.key) { this.key = full; this.paint(result, order, table, shown); }
    this.left = names && rows <= 45 ? 46 : 0;
    const w = width - this.left, h = height - top;
    context.clearRect(0, 0, width, height);
    context.imageSmoothingEnabled = false;
    context.drawImage(this.base, this.left, top, w, h);
    context.font = "10px system-ui, sans-serif";
    context.fillStyle = themed("--soft");
    context.textAlign = "center";
    const every = Math.ceil(18 / (w / columns));
    for (let c = 0; c < columns; c++) {
      if (c !== column && (c % every || Math.abs(c - column) < every)) continue;
      context.font = c === column ? "700 11px system-ui, sans-serif" : "10px system-ui, sans-serif";
      context.fillStyle = themed(c === column ? "--accent" : "--soft");
      context.fillText(String(c + 1), this.left + ((c + 0.5) * w) / columns, 11);
    }
    if (this.left) {
      context.textAlign = "right";
      context.font = `${Math.min(11, (h / rows) * 0.9)}px system-ui, sans-serif`;
      context.fillStyle = themed("--soft");
      for (let i = 0; i < rows; i++) context.fillText(names[order[i]].slice(0, 7), this.left - 4, top + ((i + 0.75) * h) / rows);
    }
    context.strokeStyle = themed("--ink");
    context.lineWidth = 2;
    context.strokeRect(this.left + (column * w) / columns, top, w / columns, h - 1);
    for (const [node, colour, thick] of [[hover, "--accent", 2], [selected, "--ink", 2]]) {
      if (node === null || node < 0) continue;
      const place = this.placeOf(node), tall = Math.max(3, h / rows);
      context.strokeStyle = themed(colour);
      context.lineWidth = thick;
      context.strokeRect(this.left + 1, top + ((place + 0.5) * h) / rows - tall / 2, w - 2, tall);
    }
  }

  paint({ values, rows, columns, ranges }, order, table, shown) {
    this.base.width = columns;
    this.base.height = shown;
    const inner = this.base.getContext("2d"), image = inner.createImageData(columns, shown);
    const pixels = new Uint32Array(image.data.buffer);
    for (let i = 0; i < shown; i++) {
      const at = order[Math.floor(((i + 0.5) * rows) / shown)] * columns;
      for (let c = 0; c < columns; c++) pixels[i * columns + c] = table.packed[shadeOf(values[at + c], ranges[c])];
    }
    inner.putImageData(image, 0, 0);
    this.places = null;
  }

  placeOf(node) {
    if (!this.places) {
      this.places = new Uint32Array(this.rows);
      this.order.forEach((v, place) => { this.places[v] = place; });
    }
    return this.places[node];
  }

  /** Node and column at a point. */
  cellAt(px, py) {
    const column = Math.floor(((px - this.left) / (this.width - this.left)) * this.columns);
    const row = Math.floor(((py - this.top) / (this.height - this.top)) * this.rows);
    return {
      column: px >= this.left && column < this.columns ? column : -1,
      node: row >= 0 && row < this.rows ? this.order[row] : -1,
    };
  }
}

/** Eigenvalues δ of the walk matrix, the automaton's poles 1/λ, and where the run sum diverges: |δ| ≥ 1/γ. */
class SpectrumPicture {
  constructor(canvas) { this.canvas = canvas; this.points = []; }

  draw({ real, imaginary, radius, gamma, angles, chosen, brush, hover }) {
    const { context, width, height } = fitted(this.canvas);
    if (width < 20 || height < 20) return;
    const limit = gamma > 0 ? 1 / gamma : Infinity, least = radius > 0 ? radius : 1;
    // Show the circle of poles while it is near the spectrum.
    const reach = 1.22 * Math.max(least, Math.min(limit, 1.9 * least)), scale = Math.min(width, height) / 2 / reach;
    const cx = width / 2, cy = height / 2;
    Object.assign(this, { cx, cy, scale });
    context.clearRect(0, 0, width, height);
    if (gamma > 0 && angles) {
      context.fillStyle = themed("--shade");
      context.beginPath();
      context.rect(0, 0, width, height);
      context.arc(cx, cy, limit * scale, 0, 2 * Math.PI, true);
      context.fill("evenodd");
      context.strokeStyle = themed("--warn");
      context.setLineDash([5, 4]);
      context.beginPath();
      context.arc(cx, cy, limit * scale, 0, 2 * Math.PI);
      context.stroke();
      context.setLineDash([]);
    }
    const poles = gamma > 0 && angles ? Array.from(angles, (angle) => [cx + limit * Math.cos(angle) * scale, cy + limit * Math.sin(angle) * scale]) : [];
    this.axes(context, width, height, reach, poles);
    if (poles.length) {
      context.strokeStyle = themed("--warn");
      context.lineWidth = 2;
      for (const [px, py] of poles) {
        context.beginPath();
        context.moveTo(px - 4, py - 4); context.lineTo(px + 4, py + 4); context.moveTo(px + 4, py - 4); context.lineTo(px - 4, py + 4);
        context.stroke();
      }
      context.lineWidth = 1;
    }
    this.points = [];
    const groups = new Map();
    for (let j = 0; j < real.length; j++) {
      const x = real[j], y = imaginary ? imaginary[j] : 0, key = `${Math.round(x * 1e7)},${Math.round(y * 1e7)}`;
      if (!groups.has(key)) groups.set(key, { x, y, members: [] });
      groups.get(key).members.push(j);
    }
    for (const { x, y, members } of groups.values()) {
      const px = cx + x * scale, py = cy - y * scale, size = Math.min(9, 3.2 + 1.1 * Math.sqrt(members.length - 1));
      const outside = angles && Math.hypot(x, y) >= limit * (1 - 1e-12);
      const picked = members.some((j) => chosen.includes(j));
      context.globalAlpha = picked ? 1 : 0.75;
      context.fillStyle = themed(picked ? "--ink" : outside ? "--bad" : "--accent");
      context.beginPath();
      context.arc(px, py, picked || members.includes(hover) ? size + 2 : size, 0, 7);
      context.fill();
      this.points.push({ px, py, size, members, x, y });
    }
    context.globalAlpha = 1;
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "left";
    if (angles && gamma > 0) {
      context.fillStyle = themed("--warn");
      const far = limit * scale > Math.hypot(cx, cy);
      context.fillText(far ? `poles at |z| = 1/γ = ${formatted(limit)}, outside this picture` : "× poles 1/λ   shaded: the run sum diverges", 8, height - 8);
    }
    if (brush) {
      context.strokeStyle = themed("--ink");
      context.setLineDash([3, 3]);
      context.strokeRect(brush[0], brush[1], brush[2] - brush[0], brush[3] - brush[1]);
      context.setLineDash([]);
    }
  }

  axes(context, width, height, reach, poles) {
    const { cx, cy, scale } = this;
    context.strokeStyle = themed("--line");
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(0, cy); context.lineTo(width, cy); context.moveTo(cx, 0); context.lineTo(cx, height);
    context.stroke();
    context.fillStyle = themed("--soft");
    context.font = "10px system-ui, sans-serif";
    context.textAlign = "center";
    const step = [1, 2, 5, 10].map((x) => x * 10 ** Math.floor(Math.log10(reach / 2))).find((x) => reach / x <= 4) ?? reach / 2;
    for (let x = -Math.floor(reach / step) * step; x <= reach; x += step) {
      const px = cx + x * scale, covered = poles.some((pole) => Math.abs(pole[0] - px) < 18 && Math.abs(pole[1] - cy - 14) < 14);
      if (Math.abs(x) > step / 2 && px > 12 && px < width - 12 && !covered) context.fillText(formatted(x), px, cy + 18);
    }
    context.fillText("Re", width - 12, cy - 6);
    context.fillText("Im", cx + 12, 11);
  }

  /** The eigenvalues nearest to a point, as indices. */
  at(px, py) {
    let best = null, least = 16 ** 2;
    for (const point of this.points) {
      const square = (point.px - px) ** 2 + (point.py - py) ** 2;
      if (square < least) { least = square; best = point; }
    }
    return best;
  }

  within([ax, ay, bx, by]) {
    const left = Math.min(ax, bx), right = Math.max(ax, bx), top = Math.min(ay, by), bottom = Math.max(ay, by);
    return this.points.filter(({ px, py }) => px >= left && px <= right && py >= top && py <= bottom).flatMap(({ members }) => members);
  }
}

/** Bars: log of the weight of all runs by number of steps; they fall while the sum over runs converges. */
function drawRuns(canvas, weights) {
  const { context, width, height } = fitted(canvas);
  context.clearRect(0, 0, width, height);
  const logs = weights.map((x) => Math.log10(x / weights[0]));
  const top = 3, bottom = -6, zero = height * (top / (top - bottom)), gap = width / logs.length;
  context.strokeStyle = themed("--line");
  context.beginPath();
  context.moveTo(0, zero); context.lineTo(width, zero);
  context.stroke();
  logs.forEach((x, t) => {
    if (x === -Infinity) return;
    const level = Math.max(bottom, Math.min(top, x)), y = height * ((top - level) / (top - bottom));
    context.fillStyle = themed(x > 1e-9 ? "--warn" : "--good");
    context.fillRect(t * gap + 1, y, Math.max(1, gap - 2), height - y);
  });
}
