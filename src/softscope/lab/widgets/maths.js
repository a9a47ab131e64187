// The mathematics of the pictures, the same as the library's; tests/lab compares the two.

// Exponentials against the maximum, and for each entry the sum of the others: 1 − s and entropy then lose nothing
// next to one-hot, where 1 − s computed from s would be 0.
function exponentials(logits, temperature) {
  const top = Math.max(...logits);
  const e = logits.map((x) => Math.exp((x - top) / temperature));
  return { top, e, total: e.reduce((a, b) => a + b, 0) };
}

export function softmax(logits, temperature = 1) {
  const { e, total } = exponentials(logits, temperature);
  return e.map((x) => x / total);
}

// Weights, slopes s(1−s), entropy in nats, effective support, and the trace of the Jacobian.
export function readings(logits, temperature = 1) {
  const { top, e, total } = exponentials(logits, temperature);
  const weights = e.map((x) => x / total);
  const slopes = e.map((x, i) => (x / total) * (e.reduce((sum, y, j) => (j === i ? sum : sum + y), 0) / total));
  let leaders = 0, rest = 0, mean = 0;
  logits.forEach((x, i) => {
    if (x === top) leaders += 1;
    else if (e[i] > 0) { rest += e[i]; mean += e[i] * ((x - top) / temperature); }  // 0 · −∞ would be NaN
  });
  const entropy = Math.log(leaders) + Math.log1p(rest / leaders) - (e.length ? mean / total : 0);
  return {
    weights, slopes, entropy,
    support: Math.exp(entropy),
    peak: 1 / total,
    trace: slopes.reduce((a, b) => a + b, 0),
  };
}

// ∂s_i/∂x_j = s_i(δ_ij − s_j)
export function jacobian(logits, temperature = 1) {
  const { weights, slopes } = readings(logits, temperature);
  return weights.map((s, i) => weights.map((r, j) => (i === j ? slopes[i] : -s * r) / temperature));
}

export function norm(matrix) {
  return Math.sqrt(matrix.flat().reduce((sum, x) => sum + x * x, 0));
}

export function dot(a, b) {
  return a.reduce((sum, x, i) => sum + x * b[i], 0);
}

// Every stage of attention; a key that the mask hides has logit −∞ and weight 0.
export function attention(q, k, v, { scale = 1 / Math.sqrt(q[0].length), causal = false } = {}) {
  const products = q.map((row) => k.map((key) => dot(row, key)));
  const logits = products.map((row, i) => row.map((x, j) => (causal && j > i ? -Infinity : scale * x)));
  const weights = logits.map((row) => softmax(row));
  const output = weights.map((row) => v[0].map((_, c) => dot(row, v.map((value) => value[c]))));
  return { products, logits, weights, output };
}

// Seeded normal numbers: mulberry32 and Box–Muller.
export function normals(seed, count) {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), 1 | state);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
  };
  const made = new Float64Array(count);
  for (let i = 0; i < count; i += 2) {
    const radius = Math.sqrt(-2 * Math.log(1 - uniform())), angle = 2 * Math.PI * uniform();
    made[i] = radius * Math.cos(angle);
    if (i + 1 < count) made[i + 1] = radius * Math.sin(angle);
  }
  return made;
}

// q·k for `rows` queries with `keys` keys each, for d = 1, 2, 4, … up to 2^steps: the first d components of each vector.
export function dotProducts(seed, rows, keys, steps) {
  const d = 2 ** steps, numbers = normals(seed, rows * (keys + 1) * d);
  const made = Array.from({ length: steps + 1 }, () => []);
  for (let r = 0; r < rows; r++) {
    const q = r * (keys + 1) * d, row = made.map(() => []);
    for (let j = 1; j <= keys; j++) {
      let sum = 0, step = 0;
      for (let i = 0; i < d; i++) {
        sum += numbers[q + i] * numbers[q + j * d + i];
        if (i + 1 === 2 ** step) row[step++].push(sum);
      }
    }
    row.forEach((x, step) => made[step].push(x));
  }
  return made;
}

export function variance(values) {
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  return values.reduce((sum, x) => sum + (x - mean) ** 2, 0) / values.length;
}
