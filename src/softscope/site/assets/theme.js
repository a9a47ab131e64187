// The theme: the reader's choice, or else the system's. It is set before anything is drawn.
(() => {
  const root = document.documentElement, KEY = "softscope-theme";
  const kept = (value) => {
    try {
      if (value !== undefined) localStorage.setItem(KEY, value);
      return localStorage.getItem(KEY);
    } catch { return null; }  // a browser may forbid storage
  };
  const chosen = kept();
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
  const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  document.addEventListener("DOMContentLoaded", () => {
    const button = document.querySelector("button.theme");
    const name = () => {
      const label = dark() ? button.dataset.light : button.dataset.dark;
      button.title = label;
      button.setAttribute("aria-label", label);
    };
    button.addEventListener("click", () => { kept(root.dataset.theme = dark() ? "light" : "dark"); name(); });
    name();
  });
})();
