// Lesson 9 in the page: train a head, watch which keys it reads, change the remedy, train on.
(() => {
  const WORDS = {
    width: { zh: "宽度 d", en: "width d" },
    keys: { zh: "键的总数", en: "keys in all" },
    remedy: { zh: "疗法", en: "remedy" },
    none: { zh: "无：不缩放", en: "none: unscaled" },
    scaled: { zh: "缩放 1/√d", en: "scale by 1/√d" },
    unit: { zh: "QK 归一化（单位长），T = 1/√d", en: "QK-norm, unit, T = 1/√d" },
    softcap: { zh: "软上限 5", en: "soft cap 5" },
    train: { zh: "训练 100 步", en: "train 100 steps" },
    again: { zh: "重新开始（留下曲线）", en: "start again (the curve stays)" },
    step: { zh: "步", en: "step" },
    loss: { zh: "损失（奈特）", en: "loss (nats)" },
    right: { zh: "答对", en: "correct answers" },
    blocked: { zh: "被阻断的行", en: "blocked rows" },
    advantage: { zh: "优势", en: "advantage" },
    map: { zh: "每个 query（行）读哪个键（列）；对角线是正确答案", en: "which key (column) each query (row) reads; the diagonal is right" },
    curve: { zh: "答对的比例；虚线处换了疗法", en: "share of correct answers; the remedy changed at dashed lines" },
    begin: { zh: "按“训练 100 步”。先不缩放，看看会怎样。", en: "Press “train 100 steps”. Start unscaled and see what happens." },
    starving: { zh: "它挨饿了：行被阻断，梯度到不了 q 和 k，读的键也不对。换一种疗法，接着训练同一个模型。", en: "It starves: its rows are blocked, no gradient reaches q and k, and the keys it reads are wrong. Choose a remedy and train the same model on." },
    learned: { zh: "它学会了：尖锐，而且看对了地方。这时被阻断并不是病。", en: "It has learned: it is sharp, and it looks in the right place. Being blocked is no illness now." },
    partly: { zh: "一部分 query 学会了，其余的又被阻断在错的键上。试试另一种疗法，接着训练。", en: "Some queries have recovered; the others are blocked again, on wrong keys. Try another remedy and train on." },
    learning: { zh: "还在学。再训练 100 步。", en: "It is still learning. Train another 100 steps." },
  };
  const STEPS = 100, RECENT = 20, SIZE = 16, SEED = 3, WIDTH = 320, HEIGHT = 190, SVG = "http://www.w3.org/2000/svg";
  const { Head, initial, batch, rate, REMEDIES } = window.softscopeHead;
  const { softmax } = window.softscopeMaths;

  function make(tag, attributes, parent, text) {
    const made = ["svg", "path", "rect", "line", "text"].includes(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  }

  function start(root) {
    const lang = root.dataset.trainer, say = (key) => WORDS[key][lang];
    const controls = make("div", { class: "head-controls" }, root);
    const select = (label, options, value) => {
      const line = make("label", { class: "control" }, controls);
      make("span", {}, line, say(label));
      const made = make("select", { "data-choice": label, autocomplete: "off" }, line);
      for (const [key, name] of options) make("option", { value: key }, made, name);
      made.value = value;
      return made;
    };
    const width = select("width", [16, 64, 128, 256].map((d) => [d, d]), 128);
    const keys = select("keys", [[16, 16], [64, 64]], 16);
    const remedy = select("remedy", Object.keys(REMEDIES).map((key) => [key, say(key)]), "none");
    const buttons = make("div", { class: "head-controls" }, root);
    const train = make("button", { type: "button", "data-do": "train" }, buttons, say("train"));
    const again = make("button", { type: "button", "data-do": "again" }, buttons, say("again"));
    const says = make("p", { class: "head-says", "aria-live": "polite" }, root);
    const line = make("p", { class: "head-readings" }, root);
    const readings = Object.fromEntries(["step", "loss", "right", "blocked", "advantage"].map((key) => {
      const box = make("span", {}, line, `${say(key)} `);
      return [key, make("b", {}, box, "–")];
    }));
    const row = make("div", { class: "head-row" }, root);
    const panel = (kind, label, width, height) => {
      const box = make("div", { class: kind }, row);
      make("p", { class: "quiet" }, box, say(label));
      return make("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": say(label) }, box);
    };
    const map = panel("head-map", "map", SIZE * 16, SIZE * 16), plot = panel("head-plot", "curve", WIDTH, HEIGHT);
    const cells = Array.from({ length: SIZE * SIZE }, (_, i) => make("rect", {
      x: (i % SIZE) * 16 + 1, y: Math.floor(i / SIZE) * 16 + 1, width: 14, height: 14, fill: "#d55e00",
      stroke: "currentColor", "stroke-opacity": Math.floor(i / SIZE) === i % SIZE ? 0.9 : 0.12 }, map));
    for (const [share, name] of [[0, "0%"], [0.5, "50%"], [1, "100%"]]) {
      const y = at(share);
      make("line", { x1: 36, x2: WIDTH, y1: y, y2: y, stroke: "currentColor", "stroke-opacity": 0.2 }, plot);
      make("text", { x: 32, y: y + 4, "text-anchor": "end", "font-size": 11, fill: "currentColor" }, plot, name);
    }
    const end = make("text", { x: WIDTH, y: HEIGHT - 4, "text-anchor": "end", "font-size": 11, fill: "currentColor" }, plot);
    const marks = make("path", { fill: "none", stroke: "currentColor", "stroke-dasharray": "3 3", "stroke-opacity": 0.6 }, plot);
    const earlier = make("path", { fill: "none", stroke: "currentColor", "stroke-opacity": 0.35 }, plot);
    const curve = make("path", { fill: "none", stroke: "#2b8cc4", "stroke-width": 2 }, plot);
    let head, course, changed, kept = [], busy = false;
    function at(share) { return HEIGHT - 24 - share * (HEIGHT - 36); }

    function fresh() {
      if (course?.length) kept.push(smooth());
      const d = Number(width.value), vocabulary = Number(keys.value);
      head = new Head({ d, vocabulary, weights: initial(d, vocabulary, SEED), rate: rate(d), remedy: REMEDIES[remedy.value](d) });
      course = []; changed = [];
      draw();
    }
    // Single batches are noisy: a mean over the last few steps.
    function smooth() {
      return course.map((_, i) => {
        const last = course.slice(Math.max(0, i + 1 - RECENT), i + 1);
        return last.reduce((sum, one) => sum + one.right, 0) / last.length;
      });
    }
    function draw() {
      const shares = smooth(), longest = Math.max(STEPS, shares.length, ...kept.map((one) => one.length));
      const x = (step) => 36 + (WIDTH - 36) * step / longest;
      const path = (values) => values.map((share, i) => `${i ? "L" : "M"}${x(i + 1).toFixed(1)} ${at(share).toFixed(1)}`).join("");
      curve.setAttribute("d", path(shares));
      earlier.setAttribute("d", kept.map(path).join(""));
      marks.setAttribute("d", changed.map((step) => `M${x(step)} ${at(0)}V${at(1)}`).join(""));
      end.textContent = `${say("step")} ${longest}`;
      const { logits } = head.scores(), n = head.vocabulary;
      for (let q = 0; q < SIZE; q++) {
        const weights = softmax(Array.from(logits.slice(q * n, q * n + SIZE)));
        weights.forEach((weight, k) => cells[q * SIZE + k].setAttribute("fill-opacity", weight.toFixed(3)));
      }
      const now = course.at(-1), right = shares.at(-1);
      readings.step.textContent = head.step;
      if (!now) { for (const key of ["loss", "right", "blocked", "advantage"]) readings[key].textContent = "–"; }
      else {
        readings.loss.textContent = now.loss.toFixed(2);
        readings.right.textContent = `${Math.round(100 * right)}%`;
        readings.blocked.textContent = `${Math.round(100 * now.blocked)}%`;
        readings.advantage.textContent = now.advantage.toFixed(2).replace("-", "−");
      }
      const state = !now ? "begin" : right >= 0.9 ? "learned" : now.blocked <= 0.5 ? "learning" : right < 0.5 ? "starving" : "partly";
      if (!busy) says.textContent = say(state);
      Object.assign(root.dataset, { step: head.step, right: right ?? "", blocked: now?.blocked ?? "", state: busy ? "busy" : state });
    }
    function run(until) {
      const began = performance.now();
      do {
        const seed = 1000003 + head.step;  // the same sequences for every run
        course.push(head.train(batch(seed, { vocabulary: head.vocabulary })));
      } while (head.step < until && performance.now() - began < 25);
      busy = head.step < until;
      for (const one of [train, again, width, keys]) one.disabled = busy;
      draw();
      if (busy) requestAnimationFrame(() => run(until));
    }
    train.addEventListener("click", () => { busy = true; run(head.step + STEPS); });
    again.addEventListener("click", fresh);
    width.addEventListener("change", () => { kept = []; course = []; fresh(); });
    keys.addEventListener("change", () => { kept = []; course = []; fresh(); });
    remedy.addEventListener("change", () => {
      head.remedy = REMEDIES[remedy.value](head.d);
      if (head.step) changed.push(head.step);
      draw();
    });
    fresh();
  }
  for (const root of document.querySelectorAll("[data-trainer]")) start(root);
})();
