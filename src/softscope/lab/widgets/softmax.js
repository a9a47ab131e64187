// A softmax to drag: logits on the left, weights and their slopes on the right.

const WORDS = {
  logits: { zh: "分数 x（拖动圆点，或用方向键）", en: "scores x (drag a dot, or use the arrow keys)" },
  weights: { zh: "权重 s（实心）与 s(1−s)（空心）", en: "weights s (filled) and s(1−s) (hollow)" },
  temperature: { zh: "温度 T", en: "temperature T" },
  entropy: { zh: "熵（奈特）", en: "entropy (nats)" },
  support: { zh: "有效支撑数", en: "effective support" },
  trace: { zh: "Σ s(1−s)", en: "Σ s(1−s)" },
  logit: { zh: "分数", en: "score" },
  shift: { zh: "全部加 1", en: "add 1 to all" },
  double: { zh: "全部乘 2", en: "times 2" },
  reset: { zh: "复位", en: "reset" },
};
const LIMIT = 6, WIDTH = 320, HEIGHT = 210, MIDDLE = 100, UNIT = 84 / LIMIT, FLOOR = 176, ROOM = 150;

export function render({ model, el }) {
  const { root, say } = begin(el, model, WORDS);
  const start = [...model.get("logits")], n = start.length, column = WIDTH / n, thick = Math.min(46, column * 0.62);
  let logits = [...start], temperature = model.get("temperature"), updates = 0;

  const row = make("div", { class: "ss-row" }, root);
  const left = panel(row, say("logits"), WIDTH, HEIGHT), right = panel(row, say("weights"), WIDTH, HEIGHT);
  const drag = draggable(left, logits, say("logit"), { limit: LIMIT, width: WIDTH, height: HEIGHT, middle: MIDDLE, unit: UNIT },
    (i, value) => { logits[i] = value; paint.soon(); }, save);
  make("line", { x1: 0, x2: WIDTH, y1: FLOOR, y2: FLOOR, class: "ss-axis" }, right);
  const bars = logits.map((_, i) => {
    const x = column * (i + 0.5);
    return {
      weight: make("rect", { x: x - thick / 2, width: thick, class: "ss-weight" }, right),
      slope: make("rect", { x: x - thick / 2, width: thick, class: "ss-slope" }, right),
      share: make("text", { x, class: "ss-number" }, right),
      value: make("text", { x, y: HEIGHT - 6, class: "ss-number ss-faint" }, right),
    };
  });

  const controls = make("div", { class: "ss-controls" }, root);
  const knob = range(controls, say("temperature"), { min: -1, max: 1, step: 0.01, value: Math.log10(temperature) },
    (value) => { temperature = 10 ** value; paint.soon(); }, save);
  const turn = (next, warmth = temperature) => { logits = next; temperature = warmth; paint.now(); save(); };
  const shared = together(controls, [[say("shift"), (x) => x + 1], [say("double"), (x) => 2 * x]], LIMIT, turn);
  const reset = button(controls, say("reset"), () => turn([...start], 1));
  const line = make("div", { class: "ss-readouts", "aria-live": "off" }, root);
  const entropy = readout(line, say("entropy")), support = readout(line, say("support")), trace = readout(line, say("trace"));

  function save() {
    tell(model, { logits: [...logits], temperature });
  }
  function draw() {
    const now = readings(logits, temperature);
    drag(logits);
    bars.forEach(({ weight, slope, share, value }, i) => {
      change(weight, { y: FLOOR - now.weights[i] * ROOM, height: now.weights[i] * ROOM });
      change(slope, { y: FLOOR - now.slopes[i] * ROOM, height: now.slopes[i] * ROOM });
      change(share, { y: FLOOR - now.weights[i] * ROOM - 6 });
      share.textContent = shown(now.weights[i]);
      value.textContent = shown(now.slopes[i]);
    });
    knob.input.value = Math.log10(temperature);
    knob.output.textContent = shown(temperature, 2);
    shared(logits);
    reset.disabled = temperature === 1 && logits.every((x, i) => x === start[i]);
    entropy.textContent = shown(now.entropy);
    support.textContent = shown(now.support, 2);
    trace.textContent = shown(now.trace);
    root.dataset.updates = ++updates;
  }
  const paint = painter(draw);
  root.paintNow = paint.now;
  draw();
  const leave = follow(model, ["logits", "temperature"], () => {
    const next = model.get("logits");
    if (next.length === n) logits = [...next];
    temperature = model.get("temperature");
    paint.soon();
  });
  return () => { leave(); paint.stop(); };
}
export default { render };
