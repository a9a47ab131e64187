// Replay: a control chooses one of the states that were computed beforehand.
(() => {
  const chosen = {}, data = (id) => JSON.parse(document.getElementById(id)?.textContent ?? "null");
  const charts = data("charts") ?? [];
  const outputs = [...document.querySelectorAll("[data-replay]")].map((place) => ({ place, ...data(place.dataset.replay) }));
  const show = (name) => {
    for (const { place, controls, states, shows } of outputs) {
      if (!controls.includes(name)) continue;
      const made = shows[states[controls.map((one) => chosen[one]).join(",")]];
      place.innerHTML = made;
      for (const chart of place.querySelectorAll("[data-chart]")) chart.innerHTML = charts[chart.dataset.chart];
      window.softscopeMount?.(place);
    }
  };
  for (const control of document.querySelectorAll("[data-control]")) {
    const name = control.dataset.control;
    if (control.type === "radio") { if (control.checked) chosen[name] = Number(control.value); }
    else chosen[name] = control.type === "checkbox" ? Number(control.checked) : Number(control.value);
    const set = (place) => {
      chosen[name] = place;
      const shown = control.parentElement.querySelector("output");
      if (shown) shown.textContent = JSON.parse(control.dataset.names)[place];
      show(name);
    };
    if (control.tagName === "BUTTON") control.addEventListener("click", () => set((chosen[name] + 1) % Number(control.dataset.count)));
    else control.addEventListener("input", () => set(control.type === "checkbox" ? Number(control.checked) : Number(control.value)));
  }
})();
