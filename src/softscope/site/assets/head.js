// A small attention head that trains: associative recall, as in softscope.tasks.RecallModel, with Adam.
// tests/site compares its losses, weights and readings with the library's, from the same initial numbers.
window.softscopeHead = (() => {
  const { normals } = window.softscopeMaths;
  const BLOCKED = 0.0025;  // as in softscope.gradient_readings

  // Matrices are rows of `columns` numbers, one after another.
  const times = (a, b, rows, inner, columns, out = new Float64Array(rows * columns)) => {  // a · b
    for (let i = 0; i < rows; i++) for (let k = 0; k < inner; k++) {
      const x = a[i * inner + k];
      if (x) for (let j = 0, o = i * columns, p = k * columns; j < columns; j++) out[o + j] += x * b[p + j];
    }
    return out;
  };
  const timesTransposed = (a, b, rows, inner, columns) => {  // a · bᵀ
    const out = new Float64Array(rows * columns);
    for (let i = 0; i < rows; i++) for (let j = 0; j < columns; j++) {
      let sum = 0;
      for (let k = 0, p = i * inner, q = j * inner; k < inner; k++) sum += a[p + k] * b[q + k];
      out[i * columns + j] = sum;
    }
    return out;
  };
  const transposedTimes = (a, b, rows, inner, columns, out = new Float64Array(rows * columns)) => {  // aᵀ · b, a has `inner` rows
    for (let k = 0; k < inner; k++) for (let i = 0; i < rows; i++) {
      const x = a[k * rows + i];
      if (x) for (let j = 0, o = i * columns, p = k * columns; j < columns; j++) out[o + j] += x * b[p + j];
    }
    return out;
  };

  // W ~ N(0, 1/d), tables ~ N(0, 1): q and k start with unit variance.
  function initial(d, vocabulary, seed) {
    const drawn = normals(seed, 4 * d * d + 3 * vocabulary * d), root = Math.sqrt(d);
    let at = 0;
    const next = (count, by) => drawn.slice(at, (at += count)).map((x) => x / by);
    return {
      w_q: next(d * d, root), w_k: next(d * d, root), w_v: next(d * d, root), w_o: next(d * d, root),
      key_table: next(vocabulary * d, 1), value_table: next(vocabulary * d, 1), readout: next(vocabulary * d, root),
    };
  }

  // `pairs` different keys, a value for each, and `queries` of the keys; fresh for every seed.
  function batch(seed, { size = 8, pairs = 16, vocabulary = 16, queries = 16 } = {}) {
    const drawn = normals(seed, size * (vocabulary + 2 * (pairs + queries)));
    let at = 0;
    const whole = (high) => {  // the angle of two normal numbers is uniform
      const share = Math.atan2(drawn[at++], drawn[at++]) / (2 * Math.PI) + 0.5;
      return Math.min(high - 1, Math.floor(share * high));
    };
    return Array.from({ length: size }, () => {
      const order = Array.from(drawn.slice(at, (at += vocabulary)), (x, token) => [x, token]);
      const keys = order.sort((a, b) => a[0] - b[0]).slice(0, pairs).map(([, token]) => token);
      const values = keys.map(() => whole(vocabulary));
      const asked = Array.from({ length: queries }, () => whole(pairs));
      return { keys, values, query: asked.map((j) => keys[j]), target: asked.map((j) => values[j]) };
    });
  }

  // remedy: { scale, unit (QK-norm to length 1), softcap }
  class Head {
    constructor({ d, vocabulary, weights, rate, remedy }) {
      Object.assign(this, { d, vocabulary, weights, rate, remedy, step: 0 });
      this.moments = Object.fromEntries(Object.entries(weights).map(([name, x]) =>
        [name, { first: new Float64Array(x.length), second: new Float64Array(x.length) }]));
    }

    // Every token's q and k, and the logits between any two tokens.
    scores() {
      const { d, vocabulary: n, weights: w, remedy } = this;
      const q = timesTransposed(w.key_table, w.w_q, n, d, d), k = timesTransposed(w.key_table, w.w_k, n, d, d);
      const lengths = [q, k].map((x) => Float64Array.from({ length: n }, (_, t) => {
        let sum = 0;
        for (let i = t * d; i < (t + 1) * d; i++) sum += x[i] * x[i];
        return remedy.unit ? Math.max(Math.sqrt(sum), 1e-12) : 1;
      }));
      const [qn, kn] = [q, k].map((x, which) => x.map((value, i) => value / lengths[which][Math.floor(i / d)]));
      const products = timesTransposed(qn, kn, n, d, n).map((x) => x * remedy.scale);
      const logits = remedy.softcap ? products.map((x) => remedy.softcap * Math.tanh(x / remedy.softcap)) : products;
      return { qn, kn, lengths, logits };
    }

    // One step of Adam on the mean cross-entropy; gives loss, share of right answers and the readings before it.
    train(sequences) {
      const { d, vocabulary: n, weights: w, remedy } = this, { qn, kn, lengths, logits } = this.scores();
      const v = timesTransposed(w.value_table, w.w_v, n, d, d), p = times(w.readout, w.w_o, n, d, d);
      const answers = timesTransposed(v, p, n, d, n);  // what reading a value token adds to each answer
      const toAnswers = new Float64Array(n * n), toLogits = new Float64Array(n * n);
      const rows = sequences.reduce((sum, one) => sum + one.query.length, 0);
      let loss = 0, right = 0, blocked = 0, judged = 0, advantage = 0, ofBlocked = 0;
      for (const { keys, values, query, target } of sequences) query.forEach((asked, r) => {
        const seen = keys.map((key) => logits[asked * n + key]), top = Math.max(...seen);
        const e = seen.map((x) => Math.exp(x - top)), total = e.reduce((a, b) => a + b, 0), share = e.map((x) => x / total);
        const z = new Float64Array(n);
        values.forEach((value, j) => { for (let c = 0; c < n; c++) z[c] += share[j] * answers[value * n + c]; });
        const high = Math.max(...z), odds = z.map((x) => Math.exp(x - high)), all = odds.reduce((a, b) => a + b, 0);
        loss += (Math.log(all) + high - z[target[r]]) / rows;
        right += (z.indexOf(high) === target[r]) / rows;
        const grad = odds.map((x, c) => (x / all - (c === target[r])) / rows);
        const wants = values.map((value, j) => {
          let sum = 0;
          for (let c = 0; c < n; c++) {
            sum += grad[c] * answers[value * n + c];
            toAnswers[value * n + c] += share[j] * grad[c];
          }
          return sum;
        });
        const mean = wants.reduce((a, b) => a + b, 0) / wants.length, got = wants.reduce((sum, x, j) => sum + x * share[j], 0);
        let demand = 0, supply = 0;
        keys.forEach((key, j) => {
          const slope = remedy.softcap ? 1 - (seen[j] / remedy.softcap) ** 2 : 1;
          const through = share[j] * (wants[j] - got) * slope;
          toLogits[asked * n + key] += through;
          demand += (wants[j] - mean) ** 2;
          supply += through ** 2;
        });
        if (demand > 0) {
          judged += 1;
          const better = (mean - got) / Math.sqrt(demand / keys.length);
          advantage += better;
          if (keys.length * Math.sqrt(supply / demand) < BLOCKED * Math.sqrt(keys.length)) { blocked += 1; ofBlocked += better; }
        }
      });
      this.update(this.gradients({ qn, kn, lengths, v, p, toAnswers, toLogits }));
      this.step += 1;
      // As the doctor has it: the advantage of the blocked rows, if there are any.
      return { loss, right, blocked: blocked / judged, advantage: blocked ? ofBlocked / blocked : advantage / judged };
    }

    gradients({ qn, kn, lengths, v, p, toAnswers, toLogits }) {
      const { d, vocabulary: n, weights: w, remedy } = this;
      const scaled = toLogits.map((x) => x * remedy.scale);
      const through = (x, to, length) => {  // back through the normalisation to length 1
        if (!remedy.unit) return to;
        for (let t = 0; t < n; t++) {
          let along = 0;
          for (let i = t * d; i < (t + 1) * d; i++) along += x[i] * to[i];
          for (let i = t * d; i < (t + 1) * d; i++) to[i] = (to[i] - x[i] * along) / length[t];
        }
        return to;
      };
      const q = through(qn, times(scaled, kn, n, n, d), lengths[0]);
      const k = through(kn, transposedTimes(scaled, qn, n, n, d), lengths[1]);
      const toP = transposedTimes(toAnswers, v, n, n, d), toV = times(toAnswers, p, n, n, d);
      return {
        w_q: transposedTimes(q, w.key_table, d, n, d), w_k: transposedTimes(k, w.key_table, d, n, d),
        w_v: transposedTimes(toV, w.value_table, d, n, d), w_o: transposedTimes(w.readout, toP, d, n, d),
        key_table: times(k, w.w_k, n, d, d, times(q, w.w_q, n, d, d)), value_table: times(toV, w.w_v, n, d, d),
        readout: timesTransposed(toP, w.w_o, n, d, d),
      };
    }

    update(gradients) {
      const t = this.step + 1, one = 1 - 0.9 ** t, two = Math.sqrt(1 - 0.999 ** t);
      for (const [name, grad] of Object.entries(gradients)) {
        const { first, second } = this.moments[name], x = this.weights[name];
        for (let i = 0; i < x.length; i++) {
          first[i] += 0.1 * (grad[i] - first[i]);
          second[i] = 0.999 * second[i] + 0.001 * grad[i] * grad[i];
          x[i] -= (this.rate / one) * first[i] / (Math.sqrt(second[i]) / two + 1e-8);
        }
      }
    }
  }
  // As in softscope.experiments.recall.learning_rate.
  const rate = (d) => Math.min(1e-2, 4.096 / d ** 1.5);
  const REMEDIES = {
    none: () => ({ scale: 1, unit: false, softcap: null }),
    scaled: (d) => ({ scale: 1 / Math.sqrt(d), unit: false, softcap: null }),
    unit: (d) => ({ scale: Math.sqrt(d), unit: true, softcap: null }),
    softcap: () => ({ scale: 1, unit: false, softcap: 5 }),
  };
  return { Head, initial, batch, rate, REMEDIES };
})();
