// Filters of the page: one text, one verdict, one search; and the language.
const root = document.documentElement;
const chosen = { text: "", verdict: "" };
const articles = [...document.querySelectorAll("article[data-text]")];
const search = document.querySelector("input");

function filter() {
  const wanted = search.value.trim().toLowerCase();
  let left = 0;
  for (const article of articles) {
    const fits = Object.entries(chosen).every(([name, value]) => !value || article.dataset[name] === value);
    article.hidden = !(fits && article.textContent.toLowerCase().includes(wanted));
    left += !article.hidden;
  }
  for (const section of document.querySelectorAll("section[data-text]"))
    section.hidden = !section.querySelector("article:not([hidden])");
  document.getElementById("left").textContent = left;
}

function language(lang) {
  root.dataset.lang = root.lang = lang;
  search.placeholder = search.dataset[lang];
  search.setAttribute("aria-label", search.dataset[lang]);
  for (const button of document.querySelectorAll("button[data-lang]"))
    button.setAttribute("aria-pressed", button.dataset.lang === lang);
}

document.querySelector("nav").addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.lang) return language(button.dataset.lang);
  chosen[button.dataset.filter] = button.value;
  for (const other of document.querySelectorAll(`button[data-filter="${button.dataset.filter}"]`))
    other.setAttribute("aria-pressed", other === button);
  filter();
});
search.addEventListener("input", filter);
language(root.dataset.lang);
filter();
