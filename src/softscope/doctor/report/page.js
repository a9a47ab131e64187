// Language, theme, print, and tooltips that mouse and keyboard both reach.
const root = document.documentElement;
const tip = document.getElementById("tip");

function language(lang) {
  root.dataset.lang = root.lang = lang;
  for (const button of document.querySelectorAll("button[data-lang]"))
    button.setAttribute("aria-pressed", button.dataset.lang === lang);
  for (const drawing of document.querySelectorAll("[data-label-en]"))
    drawing.setAttribute("aria-label", lang === "zh" ? drawing.dataset.labelZh : drawing.dataset.labelEn);
}

function theme() {
  const now = root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  root.dataset.theme = now === "dark" ? "light" : "dark";
}

// What a place has to say: a mark its own text, a cell its table, row and column.
function told(place) {
  if (place.dataset.told) {
    const [transmission, advantage, blocked] = place.dataset.told.split("|");
    return root.lang === "zh" ? `${place.dataset.name}\n传导率 ${transmission}\n优势 ${advantage}\n被阻断的行 ${blocked}` :
      `${place.dataset.name}\ntransmission ${transmission}\nadvantage ${advantage}\nblocked rows ${blocked}`;
  }
  const table = place.closest("table"), row = place.parentElement;
  const shown = (node) => [...node.childNodes].map((n) =>
    n.nodeType === 3 ? n.data : getComputedStyle(n).display === "none" ? "" : n.textContent).join("");
  const column = table.tHead.rows[0].cells[place.cellIndex];
  return `${row.cells[0].title} · ${shown(table.tHead.rows[0].cells[0]).split("/").pop().trim()} ${shown(column)}\n` +
    `${shown(table.caption.querySelector("b"))}: ${shown(place)}`;
}

function show(place) {
  tip.textContent = told(place);
  if (place.dataset.told) place.setAttribute("aria-label", tip.textContent.replaceAll("\n", ", "));
  tip.hidden = false;
  const box = place.getBoundingClientRect(), own = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(box.left, innerWidth - own.width - 8))}px`;
  tip.style.top = `${box.bottom + own.height + 12 > innerHeight ? Math.max(4, box.top - own.height - 6) : box.bottom + 6}px`;
}

const wanted = ".plane .mark, .map td:not(:empty)";
const at = (event) => event.target.closest?.(wanted);
document.addEventListener("mouseover", (event) => { const place = at(event); place ? show(place) : (tip.hidden = true); });
document.addEventListener("focusin", (event) => { const place = at(event); place ? show(place) : (tip.hidden = true); });
document.addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });

// One stop for Tab in each picture and each map; arrows walk inside it, Escape closes the tooltip.
for (const group of document.querySelectorAll(".plane, .map table")) {
  const places = [...group.querySelectorAll(group.matches(".plane") ? ".mark" : "td:not(:empty)")];
  places.forEach((place, i) => place.setAttribute("tabindex", i ? "-1" : "0"));
  if (group.matches(".plane")) places.forEach((place) => place.setAttribute("role", "img"));
  group.addEventListener("keydown", (event) => {
    const i = places.indexOf(at(event));
    if (event.key === "Escape") tip.hidden = true;
    if (i < 0) return;
    const columns = group.matches(".plane") ? 1 : group.tHead.rows[0].cells.length - 1;
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
    const next = step && places[i + step];
    if (!next) return;
    event.preventDefault();
    places[i].setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus();
  });
}

for (const spark of document.querySelectorAll(".spark")) spark.setAttribute("aria-hidden", "true");
for (const button of document.querySelectorAll("button[data-lang]"))
  button.addEventListener("click", () => language(button.dataset.lang));
document.getElementById("theme").addEventListener("click", theme);
document.getElementById("print").addEventListener("click", () => print());
language(root.dataset.lang);
