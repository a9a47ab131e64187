// What the pictures share: making elements, writing numbers, sliders, and drawing once a frame.

const SVG = "http://www.w3.org/2000/svg";

function make(tag, attributes = {}, parent = null, text = null) {
  const svg = ["svg", "g", "rect", "line", "text", "path", "circle"].includes(tag);
  const made = svg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== null) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}

function change(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
}

// Writing the same text again would still lay the page out anew.
function write(element, text) {
  if (element.textContent !== String(text)) element.textContent = text;
}

// No number is rounded into 0 or 1 that is not.
export function shown(x, digits = 3) {
  if (x === -Infinity) return "−∞";
  const text = x.toFixed(digits);
  if (x !== 0 && Number(text) === 0) return x.toExponential(0).replaceAll("-", "−");
  if (x < 1 && Number(text) === 1) {
    const places = Math.ceil(-Math.log10(1 - x) - 1e-9);
    return places <= 6 ? x.toFixed(places) : "1−" + (1 - x).toExponential(0).replace("-", "−");
  }
  return text.replace("-", "−");
}

// Several changes within one frame are drawn once.
function painter(draw) {
  let asked = 0;
  const now = () => { asked = 0; draw(); };
  return { now, soon: () => { if (!asked) asked = requestAnimationFrame(now); }, stop: () => cancelAnimationFrame(asked) };
}

function range(parent, label, { min, max, step, value }, changed, settled = () => {}) {
  const line = make("label", { class: "ss-range" }, parent);
  const name = make("span", {}, line, label), input = make("input", { type: "range", min, max, step }, line);
  const output = make("output", {}, line);
  input.value = value;
  input.setAttribute("aria-label", label);
  input.addEventListener("input", () => changed(Number(input.value)));
  input.addEventListener("change", () => settled());
  return { input, output, name };
}

function button(parent, label, pressed) {
  const made = make("button", { type: "button" }, parent, label);
  made.addEventListener("click", pressed);
  return made;
}

function checkbox(parent, label, checked, changed) {
  const line = make("label", { class: "ss-check" }, parent);
  const input = make("input", { type: "checkbox" }, line);
  input.checked = checked;
  make("span", {}, line, label);
  input.addEventListener("change", () => changed(input.checked));
  return input;
}

function panel(parent, title, width, height) {
  const box = make("div", { class: "ss-panel" }, parent);
  make("div", { class: "ss-title" }, box, title);
  return make("svg", { viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": title }, box);
}

function readout(parent, label) {
  const box = make("span", { class: "ss-readout" }, parent);
  make("span", {}, box, label + " ");
  return make("b", {}, box, "");
}

// A picture starts here: its own box, its words, and the model's changes from Python.
function begin(el, model, words) {
  const root = make("div", { class: "ss-widget" }, el);
  const lang = model.get("lang") === "zh" ? "zh" : "en";
  root.setAttribute("lang", lang === "zh" ? "zh-CN" : "en");
  return { root, say: (key) => words[key][lang] };
}

// Tell Python. Each value that is set is announced at once, before the next one is: a picture that listened to itself
// would take the next one's old value back.
const telling = new WeakSet();
function tell(model, values) {
  telling.add(model);
  for (const [name, value] of Object.entries(values)) model.set(name, value);
  telling.delete(model);
  model.save_changes();
}

// Follow the model when Python changes it; gives back what undoes it.
function follow(model, names, changed) {
  const heard = () => { if (!telling.has(model)) changed(); };
  for (const name of names) model.on(`change:${name}`, heard);
  return () => { for (const name of names) model.off(`change:${name}`, heard); };
}
