// The Jacobian as a live matrix: logits as sliders, ∂s_i/∂x_j as coloured squares.

const WORDS = {
  logit: { zh: "分数 x", en: "scores x" },
  gain: { zh: "增益 k", en: "gain k" },
  matrix: { zh: "∂sᵢ/∂xⱼ", en: "∂sᵢ/∂xⱼ" },
  weights: { zh: "权重 s", en: "weights s" },
  trace: { zh: "迹 Σ s(1−s)", en: "trace Σ s(1−s)" },
  norm: { zh: "范数 ‖J‖", en: "norm ‖J‖" },
};
const CELL = 66, TOP = 22;

export function render({ model, el }) {
  const { root, say } = begin(el, model, WORDS);
  let logits = [...model.get("logits")], gain = model.get("gain"), updates = 0;
  const n = logits.length, size = CELL * n;
  const row = make("div", { class: "ss-row" }, root);
  const sliders = make("div", { class: "ss-panel" }, row);
  make("div", { class: "ss-title" }, sliders, say("logit"));
  const inputs = logits.map((value, i) =>
    range(sliders, `x${"₁₂₃₄₅₆₇₈"[i]}`, { min: -4, max: 4, step: 0.05, value }, (x) => { logits[i] = x; paint.soon(); }, save));
  const knob = range(sliders, say("gain"), { min: -1, max: 1.5, step: 0.01, value: Math.log10(gain) },
    (x) => { gain = 10 ** x; paint.soon(); }, save);
  const lines = make("div", { class: "ss-readouts" }, sliders);
  const weights = readout(lines, say("weights")), trace = readout(lines, say("trace")), length = readout(lines, say("norm"));
  const svg = panel(row, say("matrix"), size + 2, size + TOP);
  const cells = logits.map((_, i) => logits.map((_, j) => {
    const x = j * CELL + 1, y = i * CELL + TOP;
    make("rect", { x, y, width: CELL - 2, height: CELL - 2, class: "ss-cell" }, svg);
    return {
      fill: make("rect", { x, y, width: CELL - 2, height: CELL - 2 }, svg),
      text: make("text", { x: x + CELL / 2, y: y + CELL / 2 + 5, class: "ss-number" }, svg),
    };
  }));
  logits.forEach((_, j) => make("text", { x: (j + 0.5) * CELL, y: 14, class: "ss-number ss-faint" }, svg, `x${"₁₂₃₄₅₆₇₈"[j]}`));

  function save() {
    tell(model, { logits: [...logits], gain });
  }
  function draw() {
    const fed = logits.map((x) => gain * x), now = readings(fed), matrix = jacobian(fed);
    cells.forEach((line, i) => line.forEach(({ fill, text }, j) => {
      const value = matrix[i][j];
      change(fill, { fill: value > 0 ? "#d55e00" : "#2b8cc4", opacity: Math.min(0.85, Math.abs(value) * 3.4) });
      text.textContent = shown(value);
    }));
    inputs.forEach(({ input, output }, i) => { input.value = logits[i]; output.textContent = shown(logits[i], 2); });
    knob.input.value = Math.log10(gain);
    knob.output.textContent = shown(gain, 2);
    weights.textContent = now.weights.map((x) => shown(x)).join("  ");
    trace.textContent = shown(now.trace, 4);
    length.textContent = shown(norm(matrix), 4);
    root.dataset.updates = ++updates;
  }
  const paint = painter(draw);
  root.paintNow = paint.now;
  draw();
  const leave = follow(model, ["logits", "gain"], () => {
    if (model.get("logits").length === n) logits = [...model.get("logits")];
    gain = model.get("gain");
    paint.soon();
  });
  return () => { leave(); paint.stop(); };
}
export default { render };
