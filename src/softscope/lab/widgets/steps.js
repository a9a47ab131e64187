// The two steps of softmax: scores become positive bars eˣ, and the bars, laid end to end, become one bar of length 1.

const WORDS = {
  scores: { zh: "分数 x（拖动圆点，或用方向键）", en: "scores x (drag a dot, or use the arrow keys)" },
  powers: { zh: "第一步：取指数，得到 eˣ", en: "step one: take exponentials, eˣ" },
  shares: { zh: "第二步：首尾相接，再除以总长，得到权重 s", en: "step two: lay them end to end and divide by the total length to get the weights s" },
  score: { zh: "分数", en: "score" },
  total: { zh: "总和", en: "sum" },
  up: { zh: "全部加 1", en: "add 1 to all" },
  down: { zh: "全部减 1", en: "subtract 1 from all" },
  reset: { zh: "复位", en: "reset" },
};
const LIMIT = 3, WIDTH = 320, HEIGHT = 210, MIDDLE = 100, UNIT = 84 / LIMIT, FLOOR = 186, LONG = 560, TALL = 70;
const TOP = 160 / Math.exp(LIMIT);  // one scale for all, so that adding 1 can be seen to stretch every bar alike
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00"], SMALL = "₁₂₃₄₅₆";

export function render({ model, el }) {
  const { root, say } = begin(el, model, WORDS);
  const start = [...model.get("logits")], n = start.length, column = WIDTH / n, thick = Math.min(46, column * 0.62);
  let logits = [...start], updates = 0;
  const row = make("div", { class: "ss-row" }, root);
  const left = panel(row, say("scores"), WIDTH, HEIGHT), right = panel(row, say("powers"), WIDTH, HEIGHT);
  const drag = draggable(left, logits, say("score"), { limit: LIMIT, width: WIDTH, height: HEIGHT, middle: MIDDLE, unit: UNIT },
    (i, value) => { logits[i] = value; paint.soon(); }, save);
  make("line", { x1: 0, x2: WIDTH, y1: FLOOR, y2: FLOOR, class: "ss-axis" }, right);
  const below = panel(root, say("shares"), LONG, TALL);
  below.parentNode.classList.add("ss-wide");
  const parts = logits.map((_, i) => {
    const x = column * (i + 0.5), fill = COLOURS[i % COLOURS.length];
    make("text", { x, y: HEIGHT - 6, class: "ss-number ss-faint" }, right, `x${SMALL[i]}`);
    return {
      bar: make("rect", { x: x - thick / 2, width: thick, fill, class: "ss-power" }, right),
      power: make("text", { x, class: "ss-number" }, right),
      piece: make("rect", { y: 4, height: 40, fill, class: "ss-piece" }, below),
      share: make("text", { y: 29, class: "ss-number ss-share" }, below),
    };
  });
  for (const end of [0, 1]) {
    make("text", { x: 1 + end * (LONG - 2), y: 64, class: `ss-number ss-faint ss-${end ? "last" : "first"}` }, below, end);
  }
  const sum = make("p", { class: "ss-answer" }, root);
  const controls = make("div", { class: "ss-controls" }, root);
  const turn = (next) => { logits = next; paint.now(); save(); };
  const shared = together(controls, [[say("up"), (x) => x + 1], [say("down"), (x) => x - 1]], LIMIT, turn);
  const reset = button(controls, say("reset"), () => turn([...start]));

  function save() {
    tell(model, { logits: [...logits] });
  }
  function draw() {
    const powers = logits.map(Math.exp), weights = softmax(logits), total = powers.reduce((a, b) => a + b, 0);
    drag(logits);
    let from = 1;
    parts.forEach(({ bar, power, piece, share }, i) => {
      change(bar, { y: FLOOR - powers[i] * TOP, height: powers[i] * TOP });
      change(power, { y: FLOOR - powers[i] * TOP - 6 });
      write(power, shown(powers[i], 2));
      const wide = weights[i] * (LONG - 2);
      change(piece, { x: from, width: wide });
      change(share, { x: from + wide / 2 });
      write(share, wide > 40 ? shown(weights[i]) : "");
      from += wide;
    });
    write(sum, `${say("total")} ${powers.map((x) => shown(x, 2)).join(" + ")} = ${shown(total, 2)};  `
      + weights.map((s, i) => `s${SMALL[i]} = ${shown(powers[i], 2)} / ${shown(total, 2)} = ${shown(s)}`).join(";  "));
    shared(logits);
    reset.disabled = logits.every((x, i) => x === start[i]);
    root.dataset.updates = ++updates;
  }
  const paint = painter(draw);
  root.paintNow = paint.now;
  draw();
  const leave = follow(model, ["logits"], () => {
    if (model.get("logits").length === n) logits = [...model.get("logits")];
    paint.soon();
  });
  return () => { leave(); paint.stop(); };
}
export default { render };
