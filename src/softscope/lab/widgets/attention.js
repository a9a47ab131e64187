// The attention stepper: every matrix from Q, K, V to the output, one step at a time; any number can be asked where it comes from.

const WORDS = {
  back: { zh: "← 上一步", en: "← back" },
  next: { zh: "下一步 →", en: "next →" },
  scale: { zh: "除以 √d", en: "divide by √d" },
  causal: { zh: "因果掩码", en: "causal mask" },
  ask: { zh: "点任何一个数，看它从哪里来。", en: "Choose any number to see where it comes from." },
  s0: { zh: "第 0 步：每个词有一个 query（Q 的一行：它在找什么）、一个键（K 的一行：它是什么）和一个值（V 的一行：它带来什么）。", en: "Step 0: each token has a query (a row of Q: what it looks for), a key (a row of K: what it is) and a value (a row of V: what it brings)." },
  s1: { zh: "第 1 步：Q × Kᵀ。一个 query 与一个键对应相乘再相加，就是一个分数。", en: "Step 1: Q × Kᵀ. Multiply a query and a key entry by entry and add up: that is one score." },
  s2: { zh: "第 2 步：每个分数除以 √d；掩码把不许看的位置变成 −∞。", en: "Step 2: divide every score by √d; a mask sets positions that must not be seen to −∞." },
  s3: { zh: "第 3 步：对每一行做 softmax，得到权重，每行之和为 1。", en: "Step 3: apply softmax to each row. The weights in a row sum to 1." },
  s4: { zh: "第 4 步：权重 × V。输出的每一行是各个值的加权平均。", en: "Step 4: weights × V. Each row of the output is a weighted average of the values." },
  hidden: { zh: "被掩码遮住", en: "hidden by the mask" },
  asks: { zh: "{a} 看 {b}：", en: "{a} looks at {b}: " },
  Q: { zh: "Q：在找什么", en: "Q: looks for" },
  K: { zh: "K：是什么", en: "K: is" },
  V: { zh: "V：带来什么", en: "V: brings" },
  Kᵀ: { zh: "Kᵀ", en: "Kᵀ" },
  QKᵀ: { zh: "QKᵀ：分数", en: "QKᵀ: scores" },
  x: { zh: "缩放后的分数 x", en: "scaled scores x" },
  s: { zh: "权重", en: "weights" },
  O: { zh: "输出", en: "output" },
};
const SOFTMAX = "softmax →";
const STAGES = [["Q", "K", "V"], ["Q", "Kᵀ", "QKᵀ"], ["QKᵀ", "x"], ["x", "s"], ["s", "V", "O"]];
const across = (matrix) => matrix[0].map((_, j) => matrix.map((line) => line[j]));

// Which cells make cell (i, j) of the last matrix of a step: a whole row, a whole column, or one cell of each matrix.
export function makers(step, i, j) {
  return [
    {},
    { Q: [i, null], "Kᵀ": [null, j] },
    { "QKᵀ": [i, j] },
    { x: [i, null] },
    { s: [i, null], V: [null, j] },
  ][step];
}

export function render({ model, el }) {
  const { root, say } = begin(el, model, WORDS);
  let q = model.get("q"), k = model.get("k"), v = model.get("v");
  const d = q[0].length, tokens = model.get("tokens") ?? [], parts = model.get("parts") ?? [];
  let step = model.get("step"), causal = model.get("causal"), scaled = model.get("scaled"), updates = 0;
  let picked = first();
  // A step opens with a number of its result chosen, so that its row and column are lit before anybody clicks.
  function first() {
    const last = step === STAGES.length - 1 ? v[0].length : k.length;
    return step ? [STAGES[step].at(-1), Math.min(1, q.length - 1), Math.min(last - 1, step === STAGES.length - 1 ? 2 : last)] : null;
  }
  const controls = make("div", { class: "ss-controls" }, root);
  const back = button(controls, say("back"), () => go(step - 1)), next = button(controls, say("next"), () => go(step + 1));
  const scaleBox = checkbox(controls, say("scale"), scaled, (value) => { scaled = value; draw(); save(); });
  const causalBox = checkbox(controls, say("causal"), causal, (value) => { causal = value; draw(); save(); });
  const caption = make("p", { class: "ss-caption" }, root), row = make("div", { class: "ss-row ss-matrices" }, root);
  const answer = make("p", { class: "ss-answer", "aria-live": "polite" }, root);
  const word = (i) => tokens[i] ?? String(i + 1);
  const keys = k.map((_, i) => word(i)), queries = q.map((_, i) => word(i));
  const named = (count) => parts.length === count ? parts : [];
  // Rows, columns, and the names that stand at them.
  const shapes = {
    Q: [queries, d, named(d)], K: [keys, d, named(d)], "Kᵀ": [named(d), k.length, keys], V: [keys, v[0].length, named(v[0].length)],
    "QKᵀ": [queries, k.length, keys], x: [queries, k.length, keys], s: [queries, k.length, keys], O: [queries, v[0].length, named(v[0].length)],
  };
  // Every matrix is built once; a step shows some of them, with a sign after each but the last.
  const boxes = Object.fromEntries(Object.entries(shapes).map(([name, [down, columns, heads]]) => {
    const rows = name === "Kᵀ" ? d : down.length;
    const box = make("div", { class: "ss-matrix" }, row);
    make("div", { class: "ss-title" }, box, `${say(name)} (${rows}×${columns})`);
    const grid = make("div", { class: "ss-grid", style: `grid-template-columns: auto repeat(${columns}, 1fr)` }, box);
    make("span", {}, grid);
    for (let j = 0; j < columns; j++) make("span", { class: "ss-name" }, grid, heads[j] ?? "");
    const cells = Array.from({ length: rows }, (_, i) => {
      make("span", { class: "ss-name" }, grid, down[i] ?? "");
      return Array.from({ length: columns }, (_, j) => {
        const cell = make("button", { type: "button", class: "ss-square" }, grid);
        cell.addEventListener("click", () => { picked = [name, i, j]; draw(); });
        return cell;
      });
    });
    return [name, { box, cells }];
  }));
  const signs = [0, 1].map((place) => make("div", { class: "ss-sign", style: `order: ${2 * place + 1}` }, row));
  function between() {
    return [[], ["×", "="], [scaled ? `÷ √${d} =` : "="], [SOFTMAX], ["×", "="]][step];
  }
  function go(to) {
    step = Math.max(0, Math.min(STAGES.length - 1, to));
    picked = first();
    draw();
    save();
  }
  function save() {
    tell(model, { step, causal, scaled });
  }
  const list = (a, b) => a.map((x, i) => `${shown(x, 2)}×${shown(b[i], 2)}`).join(" + ");
  const looks = (i, j) => say("asks").replace("{a}", word(i)).replace("{b}", word(j));
  function values(made) {
    return { Q: q, K: k, "Kᵀ": across(k), V: v, "QKᵀ": made.products, x: made.logits, s: made.weights, O: made.output };
  }
  function explain(made, [name, i, j]) {
    const value = values(made)[name][i][j];
    const powers = made.logits[i]?.filter(Number.isFinite).map((x) => `e^${shown(x, 2)}`).join(" + ");
    switch (name) {
      case "QKᵀ": return `${looks(i, j)}${list(q[i], k[j])} = ${shown(value, 2)}`;
      case "x": return looks(i, j) + (value === -Infinity ? say("hidden") : scaled ? `${shown(made.products[i][j], 2)} ÷ √${d} = ${shown(value, 2)}` : shown(value, 2));
      case "s": return looks(i, j) + (made.logits[i][j] === -Infinity ? `${say("hidden")}, 0` : `e^${shown(made.logits[i][j], 2)} ÷ (${powers}) = ${shown(value, 2)}`);
      case "O": return `${word(i)}${parts[j] ? `, ${parts[j]}` : ""}: ${list(made.weights[i], v.map((line) => line[j]))} = ${shown(value, 2)}`;
      default: return `${name}[${i + 1}, ${j + 1}] = ${shown(value, 2)}`;
    }
  }
  function draw() {
    const made = attention(q, k, v, { scale: scaled ? 1 / Math.sqrt(d) : 1, causal });
    const all = values(made), lit = picked && picked[0] === STAGES[step].at(-1) ? makers(step, picked[1], picked[2]) : {};
    const middle = between();
    signs.forEach((sign, place) => { sign.hidden = place >= middle.length; write(sign, middle[place] ?? ""); });
    for (const [name, { box, cells }] of Object.entries(boxes)) {
      box.hidden = !STAGES[step].includes(name);
      if (box.hidden) continue;
      box.style.order = 2 * STAGES[step].indexOf(name);
      const top = Math.max(...all[name].flat().map(Math.abs).filter(Number.isFinite), 1e-9);
      cells.forEach((line, i) => line.forEach((cell, j) => {
        const value = all[name][i][j];
        write(cell, shown(value, 2));
        const strength = Number.isFinite(value) ? 0.7 * Math.abs(value) / top : 0;
        cell.style.background = `rgb(${value > 0 ? "213 94 0" : "43 140 196"} / ${strength.toFixed(3)})`;
        const [down, right] = lit[name] ?? [];
        cell.classList.toggle("ss-lit", name in lit && (down === null || down === i) && (right === null || right === j));
        cell.classList.toggle("ss-picked", picked !== null && picked[0] === name && picked[1] === i && picked[2] === j);
      }));
    }
    write(caption, say(`s${step}`));
    write(answer, picked ? explain(made, picked) : say("ask"));
    back.disabled = step === 0;
    next.disabled = step === STAGES.length - 1;
    scaleBox.checked = scaled;
    causalBox.checked = causal;
    root.dataset.updates = ++updates;
  }
  root.paintNow = draw;
  draw();
  return follow(model, ["step", "causal", "scaled", "q", "k", "v"], () => {
    q = model.get("q"); k = model.get("k"); v = model.get("v");
    if (step !== model.get("step")) { step = model.get("step"); picked = first(); }
    causal = model.get("causal"); scaled = model.get("scaled");
    draw();
  });
}
export default { render };
