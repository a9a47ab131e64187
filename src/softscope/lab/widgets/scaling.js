// The √d explorer: random q and k of d components; the spread of q·k, and what softmax makes of it, unscaled and scaled.

const WORDS = {
  dimension: { zh: "维度 d", en: "dimension d" },
  again: { zh: "换一批随机数", en: "new random numbers" },
  spread: { zh: "q·k 的分布（橙：不缩放，绿：除以 √d，线：正态）", en: "spread of q·k (orange: unscaled, green: over √d, lines: normal)" },
  unscaled: { zh: "不缩放：一个 query 的权重", en: "unscaled: the weights of one query" },
  scaled: { zh: "除以 √d：同一个 query", en: "over √d: the same query" },
  variance: { zh: "方差", en: "variance" },
  peak: { zh: "最大权重，平均", en: "largest weight, mean" },
  entropy: { zh: "熵，平均", en: "entropy, mean" },
  trace: { zh: "Σ s(1−s)，平均", en: "Σ s(1−s), mean" },
};
const ROWS = 40, KEYS = 10, STEPS = 10, BINS = 41, WIDTH = 320, HEIGHT = 160, FLOOR = 140;
const LANES = [["unscaled", "#d55e00"], ["scaled", "#009e73"]];

export function render({ model, el }) {
  const { root, say } = begin(el, model, WORDS);
  let step = Math.round(Math.log2(model.get("dimension"))), seed = model.get("seed"), updates = 0;
  let products = dotProducts(seed, ROWS, KEYS, STEPS);
  const controls = make("div", { class: "ss-controls" }, root);
  const knob = range(controls, say("dimension"), { min: 0, max: STEPS, step: 1, value: step }, (x) => { step = x; paint.soon(); }, save);
  button(controls, say("again"), () => { seed += 1; products = dotProducts(seed, ROWS, KEYS, STEPS); paint.soon(); save(); });
  const row = make("div", { class: "ss-row" }, root);
  const spread = panel(row, say("spread"), WIDTH, HEIGHT);
  make("line", { x1: 0, x2: WIDTH, y1: FLOOR, y2: FLOOR, class: "ss-axis" }, spread);
  const ticks = [-1, 0, 1].map((at) => ({ at, text: make("text", { x: WIDTH / 2 + at * WIDTH * 0.4, y: HEIGHT - 4, class: "ss-number ss-faint" }, spread) }));
  const lanes = LANES.map(([name, colour]) => {
    const filled = make("path", { fill: colour, "fill-opacity": 0.35, stroke: "none" }, spread);
    const curve = make("path", { fill: "none", stroke: colour, "stroke-width": 2 }, spread);
    const svg = panel(row, say(name), WIDTH, HEIGHT), wide = WIDTH / KEYS;
    make("line", { x1: 0, x2: WIDTH, y1: FLOOR, y2: FLOOR, class: "ss-axis" }, svg);
    const bars = Array.from({ length: KEYS }, (_, j) => ({
      bar: make("rect", { x: j * wide + 3, width: wide - 6, fill: colour }, svg),
      text: make("text", { x: (j + 0.5) * wide, y: HEIGHT - 4, class: "ss-number ss-tiny" }, svg),
    }));
    const line = make("div", { class: "ss-readouts" }, svg.parentNode);
    const out = Object.fromEntries(["variance", "peak", "entropy", "trace"].map((key) => [key, readout(line, say(key))]));
    return { name, filled, curve, bars, out };
  });
  function save() {
    tell(model, { dimension: 2 ** step, seed });
  }
  function draw() {
    const d = 2 ** step, edge = 3.5 * Math.sqrt(d), at = (x) => WIDTH / 2 + (x / edge) * (WIDTH / 2);
    knob.output.textContent = d;
    ticks.forEach(({ at: side, text }) => { text.textContent = shown(side * 0.8 * edge, 1); });
    for (const { name, filled, curve, bars, out } of lanes) {
      const factor = name === "scaled" ? 1 / Math.sqrt(d) : 1, sd = factor * Math.sqrt(d);
      const rows = products[step].map((line) => line.map((x) => factor * x)), all = rows.flat();
      const counts = new Array(BINS).fill(0), span = 7 * sd / BINS;
      for (const x of all) {
        const bin = Math.floor((x + 3.5 * sd) / span);
        if (bin >= 0 && bin < BINS) counts[bin] += 1;
      }
      const tall = 110, mode = 1 / Math.sqrt(2 * Math.PI);
      const high = (density) => Math.max(0, FLOOR - (tall * density) / mode / 1.25);  // at d = 1 the middle is taller than the panel
      let shape = `M ${at(-3.5 * sd)} ${FLOOR}`, bell = "";
      counts.forEach((count, b) => {
        const left = -3.5 * sd + b * span, density = (count / all.length / span) * sd;
        shape += ` L ${at(left)} ${high(density)} L ${at(left + span)} ${high(density)}`;
        const z = (left + span / 2) / sd;
        bell += `${b ? "L" : "M"} ${at(left + span / 2)} ${high(mode * Math.exp((-z * z) / 2))} `;
      });
      change(filled, { d: `${shape} L ${at(3.5 * sd)} ${FLOOR} Z` });
      change(curve, { d: bell });
      const shares = softmax(rows[0]), known = rows.map((line) => readings(line));
      bars.forEach(({ bar, text }, j) => {
        change(bar, { y: FLOOR - shares[j] * 125, height: shares[j] * 125 });
        write(text, shares[j] >= 0.005 ? shown(shares[j], 2) : "≈0");
      });
      const mean = (key) => known.reduce((sum, one) => sum + one[key], 0) / known.length;
      out.variance.textContent = shown(variance(all), 2);
      for (const key of ["peak", "entropy", "trace"]) out[key].textContent = shown(mean(key));
    }
    root.dataset.updates = ++updates;
  }
  const paint = painter(draw);
  root.paintNow = paint.now;
  draw();
  const leave = follow(model, ["dimension", "seed"], () => {
    step = Math.round(Math.log2(model.get("dimension")));
    if (model.get("seed") !== seed) { seed = model.get("seed"); products = dotProducts(seed, ROWS, KEYS, STEPS); }
    paint.soon();
  });
  return () => { leave(); paint.stop(); };
}
export default { render };
