/* Numbers: arrays of the page, random automata as PyTorch draws them, and the equation P = μᵀPA + αℓ. */

const TYPES = { f8: Float64Array, f4: Float32Array, u1: Uint8Array, u2: Uint16Array, u4: Uint32Array };

/** Decode the page's arrays: name → typed array with its shape; 16-bit features are scaled back. */
function decodeArrays(index, text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  const found = {};
  for (const [name, { type, shape, start, low, step }] of Object.entries(index)) {
    const size = shape.reduce((a, b) => a * b, 1);
    let values = new TYPES[type](bytes.buffer, start, size);
    if (low) {
      const columns = shape[1];
      const scaled = new Float32Array(size);
      for (let i = 0; i < size; i++) scaled[i] = low[i % columns] + step[i % columns] * values[i];
      values = scaled;
    }
    found[name] = values;
  }
  return found;
}

/** Mersenne Twister with the distributions of torch.randn in float64 on a CPU. */
class TorchRandom {
  constructor(seed) {
    this.state = new Uint32Array(624);
    this.state[0] = seed;
    for (let i = 1; i < 624; i++) {
      const x = this.state[i - 1] ^ (this.state[i - 1] >>> 30);
      this.state[i] = Math.imul(1812433253, x) + i;
    }
    this.at = 624;
    this.spare = null;
  }

  bits() {
    const s = this.state;
    if (this.at === 624) {
      for (let i = 0; i < 624; i++) {
        const y = (s[i] & 0x80000000) | (s[(i + 1) % 624] & 0x7fffffff);
        s[i] = s[(i + 397) % 624] ^ (y >>> 1) ^ (y & 1 ? 0x9908b0df : 0);
      }
      this.at = 0;
    }
    let y = s[this.at++];
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return (y ^ (y >>> 18)) >>> 0;
  }

  /** Uniform on [0, 1) with 53 bits: the low 21 bits of the first word above all of the second. */
  uniform() {
    const high = this.bits() & 0x1fffff;
    return (high * 4294967296 + this.bits()) / 9007199254740992;
  }

  normals(size) {
    const out = new Float64Array(size);
    if (size < 16) {
      for (let i = 0; i < size; i++) out[i] = this.normal();
      return out;
    }
    for (let i = 0; i < size; i++) out[i] = this.uniform();
    for (let i = 0; i + 16 <= size; i += 16) boxMuller(out, i);
    if (size % 16) {
      for (let i = size - 16; i < size; i++) out[i] = this.uniform();
      boxMuller(out, size - 16);
    }
    return out;
  }

  normal() {
    if (this.spare !== null) {
      const value = this.spare;
      this.spare = null;
      return value;
    }
    const turn = 2 * Math.PI * this.uniform();
    const radius = Math.sqrt(-2 * Math.log1p(-this.uniform()));
    this.spare = radius * Math.sin(turn);
    return radius * Math.cos(turn);
  }
}

function boxMuller(values, start) {
  for (let i = start; i < start + 8; i++) {
    const radius = Math.sqrt(-2 * Math.log(1 - values[i]));
    const turn = 2 * Math.PI * values[i + 8];
    values[i] = radius * Math.cos(turn);
    values[i + 8] = radius * Math.sin(turn);
  }
}

/** A random orthogonal matrix [k, k], row by row: Householder reflections of Gaussian vectors. */
function orthogonal(k, random) {
  const gaussian = random.normals(k * k);
  const q = new Float64Array(k * k);
  for (let i = 0; i < k; i++) q[i * k + i] = 1;
  const v = new Float64Array(k);
  for (let j = k - 1; j >= 0; j--) {
    let square = 0;
    for (let i = j; i < k; i++) { v[i] = gaussian[i * k + j]; square += v[i] * v[i]; }
    const sign = v[j] >= 0 ? 1 : -1;
    v[j] += sign * Math.sqrt(square);
    square = 0;
    for (let i = j; i < k; i++) square += v[i] * v[i];
    for (let c = j; c < k; c++) {
      let dot = 0;
      for (let i = j; i < k; i++) dot += v[i] * q[i * k + c];
      dot *= 2 / square;
      for (let i = j; i < k; i++) q[i * k + c] -= v[i] * dot;
    }
    for (let i = 0; i < k; i++) q[i * k + j] *= -sign;
  }
  return q;
}

/** Automaton.random without damping: orthogonal transition [k, k] and normal initial weights [k, m]. */
function randomAutomaton(k, m, seed) {
  const random = new TorchRandom(seed);
  return { k, m, transition: orthogonal(k, random), initial: random.normals(k * m) };
}

/** Automaton.sinusoidal: rotations, started on label 0 of 2. */
function sinusoidalAutomaton(k) {
  const transition = new Float64Array(k * k), initial = new Float64Array(2 * k);
  for (let i = 0; i < k; i += 2) {
    const angle = -(10000 ** (-i / k));
    transition[i * k + i] = transition[(i + 1) * k + i + 1] = Math.cos(angle);
    transition[i * k + i + 1] = Math.sin(angle);
    transition[(i + 1) * k + i] = -Math.sin(angle);
    initial[2 * (i + 1)] = 1;
  }
  return { k, m: 2, transition, initial };
}

/** Angles θ of the eigenvalues exp(iθ) of an orthogonal matrix, by Jacobi rotations of its symmetric part. */
function eigenAngles(q, k) {
  const s = new Float64Array(k * k);
  for (let i = 0; i < k; i++) for (let j = 0; j < k; j++) s[i * k + j] = (q[i * k + j] + q[j * k + i]) / 2;
  for (let sweep = 0; sweep < 30; sweep++) {
    let off = 0;
    for (let p = 0; p < k; p++) for (let r = p + 1; r < k; r++) off += s[p * k + r] ** 2;
    if (off < 1e-28) break;
    for (let p = 0; p < k; p++) for (let r = p + 1; r < k; r++) {
      const apr = s[p * k + r];
      if (Math.abs(apr) < 1e-300) continue;
      const tau = (s[r * k + r] - s[p * k + p]) / (2 * apr);
      const t = (tau >= 0 ? 1 : -1) / (Math.abs(tau) + Math.sqrt(1 + tau * tau));
      const c = 1 / Math.sqrt(1 + t * t), d = t * c;
      for (let i = 0; i < k; i++) {
        const a = s[i * k + p], b = s[i * k + r];
        s[i * k + p] = c * a - d * b; s[i * k + r] = d * a + c * b;
      }
      for (let i = 0; i < k; i++) {
        const a = s[p * k + i], b = s[r * k + i];
        s[p * k + i] = c * a - d * b; s[r * k + i] = d * a + c * b;
      }
    }
  }
  // Each cosine occurs twice, for ±θ, but for the real eigenvalues 1 and -1.
  const cosines = Array.from({ length: k }, (_, i) => s[i * k + i]).sort((a, b) => b - a);
  const angles = [];
  for (let i = 0; i < k; i++) {
    if (1 - Math.abs(cosines[i]) < 1e-12) { angles.push(cosines[i] > 0 ? 0 : Math.PI); continue; }
    const angle = Math.acos((cosines[i] + (cosines[i + 1] ?? cosines[i])) / 2);
    angles.push(angle, -angle);
    i++;
  }
  return angles.slice(0, k);
}

/** Solve M X = B in place by Gaussian elimination with row pivoting; M [k, k], B [k, c]. */
function solveReal(m, b, k, c) {
  for (let p = 0; p < k; p++) {
    let best = p;
    for (let i = p + 1; i < k; i++) if (Math.abs(m[i * k + p]) > Math.abs(m[best * k + p])) best = i;
    if (best !== p) {
      for (let j = p; j < k; j++) { const x = m[p * k + j]; m[p * k + j] = m[best * k + j]; m[best * k + j] = x; }
      for (let j = 0; j < c; j++) { const x = b[p * c + j]; b[p * c + j] = b[best * c + j]; b[best * c + j] = x; }
    }
    const inverse = 1 / m[p * k + p];
    for (let i = p + 1; i < k; i++) {
      const f = m[i * k + p] * inverse;
      if (f === 0) continue;
      for (let j = p + 1; j < k; j++) m[i * k + j] -= f * m[p * k + j];
      for (let j = 0; j < c; j++) b[i * c + j] -= f * b[p * c + j];
    }
  }
  for (let p = k - 1; p >= 0; p--) {
    const inverse = 1 / m[p * k + p];
    for (let j = 0; j < c; j++) {
      let x = b[p * c + j];
      for (let i = p + 1; i < k; i++) x -= m[p * k + i] * b[i * c + j];
      b[p * c + j] = x * inverse;
    }
  }
}

/** Solve a complex system M x = b in place; all arrays split into real and imaginary parts. */
function solveComplex(mr, mi, br, bi, k) {
  for (let p = 0; p < k; p++) {
    let best = p;
    const size = (i) => mr[i * k + p] ** 2 + mi[i * k + p] ** 2;
    for (let i = p + 1; i < k; i++) if (size(i) > size(best)) best = i;
    if (best !== p) {
      for (const m of [mr, mi]) for (let j = p; j < k; j++) { const x = m[p * k + j]; m[p * k + j] = m[best * k + j]; m[best * k + j] = x; }
      for (const b of [br, bi]) { const x = b[p]; b[p] = b[best]; b[best] = x; }
    }
    const square = size(p), pr = mr[p * k + p] / square, pi = -mi[p * k + p] / square;
    for (let i = p + 1; i < k; i++) {
      const ar = mr[i * k + p], ai = mi[i * k + p];
      if (ar === 0 && ai === 0) continue;
      const fr = ar * pr - ai * pi, fi = ar * pi + ai * pr;
      for (let j = p + 1; j < k; j++) {
        mr[i * k + j] -= fr * mr[p * k + j] - fi * mi[p * k + j];
        mi[i * k + j] -= fr * mi[p * k + j] + fi * mr[p * k + j];
      }
      br[i] -= fr * br[p] - fi * bi[p];
      bi[i] -= fr * bi[p] + fi * br[p];
    }
  }
  for (let p = k - 1; p >= 0; p--) {
    let xr = br[p], xi = bi[p];
    for (let j = p + 1; j < k; j++) {
      xr -= mr[p * k + j] * br[j] - mi[p * k + j] * bi[j];
      xi -= mr[p * k + j] * bi[j] + mi[p * k + j] * br[j];
    }
    const dr = mr[p * k + p], di = mi[p * k + p], square = dr * dr + di * di;
    br[p] = (xr * dr + xi * di) / square;
    bi[p] = (xi * dr - xr * di) / square;
  }
}

/** Recomputes GAPE from the bases that the page carries. */
class LiveGraph {
  constructor(content, arrays) {
    this.n = content.nodes;
    this.arrays = arrays;
    this.graphs = content.graphs ?? [{ start: 0, stop: this.n }];
    this.graphOf = new Uint16Array(this.n);
    this.graphs.forEach(({ start, stop }, g) => this.graphOf.fill(g, start, stop));
    this.statuses = Object.keys(content.status); // from the best to the worst
    this.limits = content.limits;
    this.matrices = new Map(content.matrices.map((entry) => [entry.name, entry]));
    this.labelInfo = content.labels;
    this.machines = new Map();
    this.schur = new Map();
  }

  array(entry, key) { return entry[key] === undefined ? null : this.arrays[entry[key]]; }

  labels({ labels, seed }) {
    if (labels === "one") return { count: 1, of: new Uint8Array(this.n) };
    const { count, array, of_seed: drawn } = this.labelInfo[labels];
    return { count, of: array ? this.arrays[array] : this.arrays[drawn].subarray(seed * this.n, (seed + 1) * this.n) };
  }

  machine({ automaton, states, seed }, count) {
    const key = [automaton, states, seed, count].join();
    if (!this.machines.has(key)) {
      const machine = automaton === "sinusoidal" ? sinusoidalAutomaton(states) : randomAutomaton(states, count, seed);
      machine.angles = eigenAngles(machine.transition, states);
      if (this.machines.size > 200) this.machines.clear();
      this.machines.set(key, machine);
    }
    return this.machines.get(key);
  }

  /** ρ(A) of each graph. */
  radii(entry) { return this.arrays[entry.radii]; }

  /** γ of each graph, for settings whose damping is relative to 1/ρ(A). */
  gammas(entry, damping) { return this.radii(entry).map((radius) => (radius > 0 ? damping / radius : damping)); }

  /** The encoding [n, k] of these settings with its certificate. `source` is the node where runs of a pair start. */
  encode(settings, source = 0) {
    const entry = this.matrices.get(settings.matrix), gammas = this.gammas(entry, settings.damping);
    const labels = this.labels(settings), machine = this.machine(settings, labels.count);
    // The right-hand side αℓ: one row of labels per starting node.
    const starts = settings.readout === "pair" ? [source] : null;
    const problem = { entry, gammas, labels, machine, starts, closed: settings.readout === "closed" };
    const { values, excited } = entry.basis ? this.bySpectrum(problem) : this.bySchur(problem);
    const certificate = this.certificate(problem, values, excited);
    return { values, rows: this.n, columns: machine.k, certificate };
  }

  bySpectrum({ entry, gammas, labels, machine, starts, closed }) {
    const { n, graphOf } = this, { k, m, transition, initial } = machine;
    const u = this.arrays[entry.basis], delta = this.array(entry, "values"), scale = this.array(entry, "scale");
    // Uᵀ diag(1/c) ℓ, [n, m]: how strongly each label excites each eigenvector.
    const g = new Float64Array(n * m), excited = new Float64Array(n);
    for (const v of starts ?? Array(n).keys()) {
      const factor = scale ? 1 / scale[v] : 1, a = labels.of[v];
      for (let j = 0; j < n; j++) g[j * m + a] += u[v * n + j] * factor;
    }
    for (let j = 0; j < n; j++) for (let a = 0; a < m; a++) excited[j] += g[j * m + a] ** 2;
    const c = closed ? m : 1, system = new Float64Array(k * k), y = new Float64Array(n * k * c), b = new Float64Array(k * c);
    for (let j = 0; j < n; j++) {
      const d = gammas[graphOf[j]] * delta[j]; // the j-th eigenvector lies in the graph of node j
      for (let p = 0; p < k; p++) {
        for (let q = 0; q < k; q++) system[p * k + q] = (p === q ? 1 : 0) - d * transition[q * k + p];
        if (closed) for (let a = 0; a < m; a++) b[p * m + a] = initial[p * m + a];
        else {
          b[p] = 0;
          for (let a = 0; a < m; a++) b[p] += initial[p * m + a] * g[j * m + a];
        }
      }
      solveReal(system, b, k, c);
      y.set(b, j * k * c);
    }
    const values = new Float64Array(n * k);
    for (let v = 0; v < n; v++) {
      const a = closed ? labels.of[v] : 0, out = values.subarray(v * k, (v + 1) * k);
      for (let j = 0; j < n; j++) {
        const w = u[v * n + j];
        if (w === 0) continue;
        const f = closed ? w * w : scale ? w * scale[v] : w;
        for (let p = 0, at = j * k * c + a; p < k; p++, at += c) out[p] += f * y[at];
      }
    }
    return { values, excited: closed ? new Float64Array(n).fill(1) : excited };
  }

  schurForm(entry) {
    if (!this.schur.has(entry.name)) {
      const part = (key) => ["rows", "columns", "real", "imaginary"].map((x) => this.array(entry, `${key}_${x}`));
      const [rows, columns, real, imaginary] = part("t");
      // Entries right of the diagonal, by row.
      const above = Array.from({ length: this.n }, () => []);
      rows.forEach((row, i) => { if (columns[i] > row) above[row].push([columns[i], real[i], imaginary[i]]); });
      // The graph of each column: that of any node where it is not 0.
      const z = part("z"), graphOf = new Uint16Array(this.n);
      z[0].forEach((row, i) => { graphOf[z[1][i]] = this.graphOf[row]; });
      this.schur.set(entry.name, { z, above, graphOf });
    }
    return this.schur.get(entry.name);
  }

  bySchur({ entry, gammas, labels, machine, starts }) {
    const { n } = this, { k, m, transition, initial } = machine, { z, above, graphOf } = this.schurForm(entry);
    const [rows, columns, real, imaginary] = z, dr = this.array(entry, "values"), di = this.array(entry, "imaginary");
    const yr = new Float64Array(n * k), yi = new Float64Array(n * k), excited = new Float64Array(n).fill(1);
    for (let e = 0; e < rows.length; e++) {
      if (starts && rows[e] !== starts[0]) continue;
      const a = labels.of[rows[e]];
      for (let p = 0; p < k; p++) {
        yr[columns[e] * k + p] += real[e] * initial[p * m + a];
        yi[columns[e] * k + p] -= imaginary[e] * initial[p * m + a];
      }
    }
    const wr = new Float64Array(k), wi = new Float64Array(k), mr = new Float64Array(k * k), mi = new Float64Array(k * k);
    for (let row = n - 1; row >= 0; row--) {
      const br = yr.subarray(row * k, (row + 1) * k), bi = yi.subarray(row * k, (row + 1) * k), gamma = gammas[graphOf[row]];
      if (above[row].length) {
        wr.fill(0); wi.fill(0);
        for (const [j, tr, ti] of above[row]) for (let p = 0; p < k; p++) {
          wr[p] += tr * yr[j * k + p] - ti * yi[j * k + p];
          wi[p] += tr * yi[j * k + p] + ti * yr[j * k + p];
        }
        for (let p = 0; p < k; p++) for (let q = 0; q < k; q++) {
          br[q] += gamma * wr[p] * transition[p * k + q];
          bi[q] += gamma * wi[p] * transition[p * k + q];
        }
      }
      if (dr[row] === 0 && di[row] === 0) continue;
      for (let p = 0; p < k; p++) for (let q = 0; q < k; q++) {
        mr[p * k + q] = (p === q ? 1 : 0) - gamma * dr[row] * transition[q * k + p];
        mi[p * k + q] = -gamma * di[row] * transition[q * k + p];
      }
      solveComplex(mr, mi, br, bi, k);
    }
    const values = new Float64Array(n * k);
    for (let e = 0; e < rows.length; e++) for (let p = 0; p < k; p++) {
      values[rows[e] * k + p] += real[e] * yr[columns[e] * k + p] - imaginary[e] * yi[columns[e] * k + p];
    }
    return { values, excited };
  }

  /** Mᵀ x for x [n, k]: one step of all runs; with `absolute`, |M|ᵀ x. */
  push(entry, x, k, absolute = false) {
    const { n, arrays } = this, edges = arrays.edges, count = edges.length / 2, weight = arrays.edge_weight;
    const left = this.array(entry, "left"), right = this.array(entry, "right"), diagonal = this.array(entry, "diagonal");
    const out = new Float64Array(n * k), signed = absolute ? Math.abs : (f) => f;
    for (let e = 0; e < count; e++) {
      const u = edges[e], v = edges[count + e];
      const f = signed(entry.sign * (weight ? weight[e] : 1) * (left ? left[u] : 1) * (right ? right[v] : 1));
      for (let p = 0; p < k; p++) out[v * k + p] += f * x[u * k + p];
    }
    if (diagonal) for (let i = 0; i < n * k; i++) out[i] += signed(diagonal[(i / k) | 0]) * x[i];
    return out;
  }

  /** Per graph, ‖P - μᵀPA - αℓ‖ / ‖αℓ‖, and how large rounding alone may make it; 0 where no run starts. */
  residuals({ entry, gammas, labels, machine, starts }, values) {
    const { k, m, transition, initial } = machine;
    const pushed = this.push(entry, values, k), sizes = this.push(entry, values.map(Math.abs), k, true);
    return this.graphs.map(({ start, stop }, g) => {
      let gap = 0, moved = 0, size = 0;
      for (let v = start; v < stop; v++) for (let q = 0; q < k; q++) {
        let step = 0, absolute = 0;
        for (let p = 0; p < k; p++) {
          step += pushed[v * k + p] * transition[p * k + q];
          absolute += sizes[v * k + p] * Math.abs(transition[p * k + q]);
        }
        const rhs = starts && v !== starts[0] ? 0 : initial[q * m + labels.of[v]], value = values[v * k + q];
        gap += (value - gammas[g] * step - rhs) ** 2;
        moved += (Math.abs(value) + gammas[g] * absolute + Math.abs(rhs)) ** 2;
        size += rhs * rhs;
      }
      return size ? { residual: Math.sqrt(gap / size), rounding: Math.sqrt(moved / size) * Number.EPSILON } : { residual: 0, rounding: 0 };
    });
  }

  /** Per graph, the least |1 - λδ| over eigenvalues that the right-hand side excites; infinite where it excites none. */
  separations({ entry, gammas, machine }, excited) {
    const real = this.array(entry, "values"), imaginary = this.array(entry, "imaginary");
    const graphOf = entry.basis ? this.graphOf : this.schurForm(entry).graphOf;
    const threshold = 1e-20 * excited.reduce((a, b) => Math.max(a, b), 0), found = this.graphs.map(() => Infinity);
    for (let j = 0; j < real.length; j++) {
      if (excited[j] <= threshold) continue;
      const x = real[j], y = imaginary ? imaginary[j] : 0, g = graphOf[j];
      for (const angle of machine.angles) {
        const c = gammas[g] * Math.cos(angle), s = gammas[g] * Math.sin(angle);
        found[g] = Math.min(found[g], Math.hypot(1 - (c * x - s * y), c * y + s * x));
      }
    }
    return found;
  }

  /** The worst status of all graphs, as Python decides it, with the largest γρ(A) and residual and the least |1 - λδ|. */
  certificate(problem, values, excited) {
    const { entry, gammas, machine: { k }, closed } = problem, { gap, rounding: most, unknowns } = this.limits;
    const radii = this.radii(entry).map((radius, g) => gammas[g] * radius), separations = this.separations(problem, excited);
    const finite = values.every(Number.isFinite), checks = closed || !finite ? null : this.residuals(problem, values);
    const statuses = this.graphs.map(({ start, stop }, g) => {
      if (separations[g] <= gap) return "SINGULAR";
      if (!finite && !values.subarray(start * k, stop * k).every(Number.isFinite)) return "OVERFLOW";
      // Python bounds the errors of fewer unknowns, and finds them small.
      if (checks && checks[g].rounding > most && (stop - start) * k > unknowns) return "ILL_CONDITIONED";
      return radii[g] < 1 - gap ? "RUN_SUM" : radii[g] > 1 + gap ? "ALGEBRAIC" : "SOLVED";
    });
    const order = (status) => this.statuses.indexOf(status);
    const status = statuses.reduce((worst, each) => (order(each) > order(worst) ? each : worst));
    const residual = checks && Math.max(...checks.map((check) => check.residual));
    return { status, gammas, radius: Math.max(...radii), separation: Math.min(...separations), residual };
  }

  /** γᵗ‖(Aᵀ)ᵗ1‖ for t = 0, 1, …: the weight of all runs by number of steps. */
  runWeights(entry, gammas) {
    const norms = this.arrays[entry.run_norms], count = this.graphs.length;
    return Array.from({ length: norms.length / count }, (_, t) => Math.hypot(...gammas.map((gamma, g) => norms[t * count + g] * gamma ** t)));
  }

  /** An eigenvector of Mᵀ, or the summed squares of several, [n]. */
  eigenvector(entry, chosen) {
    const { n } = this, out = new Float64Array(n);
    const one = (j) => {
      if (entry.eigenvectors) {
        const all = this.arrays[entry.eigenvectors], width = all.length / n;
        return Float64Array.from({ length: n }, (_, v) => all[v * width + j]);
      }
      if (entry.basis) {
        const u = this.arrays[entry.basis], scale = this.array(entry, "scale");
        return Float64Array.from({ length: n }, (_, v) => u[v * n + j] * (scale ? scale[v] : 1));
      }
      return this.schurVector(entry, j);
    };
    if (chosen.length === 1) return one(chosen[0]);
    for (const j of chosen) one(j).forEach((x, v) => { out[v] += x * x; });
    return out;
  }

  /** Modulus of the eigenvector of the triangular form's j-th diagonal entry, by back substitution. */
  schurVector(entry, j) {
    const { n } = this, { z, above } = this.schurForm(entry);
    const dr = this.array(entry, "values"), di = this.array(entry, "imaginary");
    const xr = new Float64Array(n), xi = new Float64Array(n);
    xr[j] = 1;
    for (let row = j - 1; row >= 0; row--) {
      let sr = 0, si = 0;
      for (const [c, tr, ti] of above[row]) { sr += tr * xr[c] - ti * xi[c]; si += tr * xi[c] + ti * xr[c]; }
      if (sr === 0 && si === 0) continue;
      // A repeated eigenvalue has no second eigenvector; a tiny shift gives the direction it degenerates to.
      let er = dr[row] - dr[j], ei = di[row] - di[j];
      if (er * er + ei * ei < 1e-20) { er = 1e-10; ei = 0; }
      const square = er * er + ei * ei;
      xr[row] = -(sr * er + si * ei) / square;
      xi[row] = -(si * er - sr * ei) / square;
    }
    const largest = Math.max(...xr.map((x, i) => Math.hypot(x, xi[i])));
    const [rows, columns, real, imaginary] = z, vr = new Float64Array(n), vi = new Float64Array(n);
    for (let e = 0; e < rows.length; e++) {
      const a = xr[columns[e]] / largest, b = xi[columns[e]] / largest;
      vr[rows[e]] += real[e] * a - imaginary[e] * b;
      vi[rows[e]] += real[e] * b + imaginary[e] * a;
    }
    return vr.map((x, v) => Math.hypot(x, vi[v]));
  }
}
