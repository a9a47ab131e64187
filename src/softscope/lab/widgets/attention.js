// The attention stepper: every matrix from Q, K, V to the output, one step at a time; any number can be asked where it comes from.

const WORDS = {
  back: { zh: "← 上一步", en: "← back" },
  next: { zh: "下一步 →", en: "next →" },
  scale: { zh: "除以 √d", en: "divide by √d" },
  causal: { zh: "因果掩码", en: "causal mask" },
  ask: { zh: "点一个数，看它怎么算出来。", en: "Choose a number to see where it comes from." },
  s0: { zh: "第 0 步：每个词有一个 query（Q 的一行）、一个 key 和一个 value。", en: "Step 0: each token has a query (a row of Q), a key and a value." },
  s1: { zh: "第 1 步：QKᵀ，每个 query 与每个 key 的点积。", en: "Step 1: QKᵀ, the dot product of each query with each key." },
  s2: { zh: "第 2 步：缩放；掩码把看不到的位置变成 −∞。", en: "Step 2: scale; a mask sets hidden positions to −∞." },
  s3: { zh: "第 3 步：每一行做 softmax，得到权重，和为 1。", en: "Step 3: a softmax of each row gives weights that sum to 1." },
  s4: { zh: "第 4 步：输出 = 权重 · V，即 value 的加权平均。", en: "Step 4: output = weights · V, a weighted average of values." },
  hidden: { zh: "被掩码遮住", en: "hidden by the mask" },
  sum: { zh: "行和", en: "row sum" },
};
const STAGES = [["Q", "K", "V"], ["Q", "K", "QKᵀ"], ["QKᵀ", "x"], ["x", "s"], ["s", "V", "O"]];

export function render({ model, el }) {
  const { root, say } = begin(el, model, WORDS);
  const q = model.get("q"), k = model.get("k"), v = model.get("v"), d = q[0].length;
  let step = model.get("step"), causal = model.get("causal"), scaled = model.get("scaled"), picked = null, updates = 0;
  const controls = make("div", { class: "ss-controls" }, root);
  const back = button(controls, say("back"), () => go(step - 1)), next = button(controls, say("next"), () => go(step + 1));
  const scaleBox = checkbox(controls, say("scale"), scaled, (value) => { scaled = value; draw(); save(); });
  const causalBox = checkbox(controls, say("causal"), causal, (value) => { causal = value; draw(); save(); });
  const caption = make("p", { class: "ss-caption" }, root), row = make("div", { class: "ss-row ss-matrices" }, root);
  const answer = make("p", { class: "ss-answer", "aria-live": "polite" }, root);
  const shapes = { Q: [q.length, d], K: [k.length, d], V: [v.length, v[0].length], "QKᵀ": [q.length, k.length], x: [q.length, k.length], s: [q.length, k.length], O: [q.length, v[0].length] };
  // Every matrix is built once; a step shows some of them.
  const boxes = Object.fromEntries(Object.entries(shapes).map(([name, [rows, columns]]) => {
    const box = make("div", { class: "ss-matrix" }, row);
    make("div", { class: "ss-title" }, box, name);
    const grid = make("div", { class: "ss-grid", style: `grid-template-columns: repeat(${columns}, 1fr)` }, box);
    const cells = Array.from({ length: rows }, (_, i) => Array.from({ length: columns }, (_, j) => {
      const cell = make("button", { type: "button", class: "ss-square" }, grid);
      cell.addEventListener("click", () => { picked = [name, i, j]; draw(); });
      return cell;
    }));
    return [name, { box, cells }];
  }));
  function go(to) {
    step = Math.max(0, Math.min(STAGES.length - 1, to));
    picked = null;
    draw();
    save();
  }
  function save() {
    tell(model, { step, causal, scaled });
  }
  const list = (a, b) => a.map((x, i) => `${shown(x, 2)}·${shown(b[i], 2)}`).join(" + ");
  function explain(made, [name, i, j]) {
    const value = { Q: q, K: k, V: v, "QKᵀ": made.products, x: made.logits, s: made.weights, O: made.output }[name][i][j];
    switch (name) {
      case "QKᵀ": return `q${i + 1}·k${j + 1} = ${list(q[i], k[j])} = ${shown(value)}`;
      case "x": return value === -Infinity ? say("hidden") : scaled ? `${shown(made.products[i][j])} / √${d} = ${shown(value)}` : shown(value);
      case "s": return `exp(${shown(made.logits[i][j], 2)}) / Σ exp = ${shown(value)};  ${say("sum")} ${shown(made.weights[i].reduce((a, b) => a + b, 0))}`;
      case "O": return `${list(made.weights[i], v.map((line) => line[j]))} = ${shown(value)}`;
      default: return `${name}[${i + 1}, ${j + 1}] = ${shown(value)}`;
    }
  }
  function draw() {
    const made = attention(q, k, v, { scale: scaled ? 1 / Math.sqrt(d) : 1, causal });
    const all = { Q: q, K: k, V: v, "QKᵀ": made.products, x: made.logits, s: made.weights, O: made.output };
    for (const [name, { box, cells }] of Object.entries(boxes)) {
      box.hidden = !STAGES[step].includes(name);
      if (box.hidden) continue;
      box.style.order = STAGES[step].indexOf(name);
      const top = Math.max(...all[name].flat().map(Math.abs).filter(Number.isFinite), 1e-9);
      cells.forEach((line, i) => line.forEach((cell, j) => {
        const value = all[name][i][j];
        write(cell, shown(value, 2));
        const strength = Number.isFinite(value) ? 0.7 * Math.abs(value) / top : 0;
        cell.style.background = `rgb(${value > 0 ? "213 94 0" : "43 140 196"} / ${strength.toFixed(3)})`;
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
  return follow(model, ["step", "causal", "scaled"], () => {
    step = model.get("step"); causal = model.get("causal"); scaled = model.get("scaled");
    draw();
  });
}
export default { render };
