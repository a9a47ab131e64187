// Pictures without Python: a model that remembers, and tells whoever listens.
(() => {
  class Model {
    constructor(state) { this.state = state; this.heard = {}; }
    get(name) { return this.state[name]; }
    set(name, value) { this.state[name] = value; this.tell(`change:${name}`); }
    on(name, call) { (this.heard[name] ??= []).push(call); }
    off(name, call) { this.heard[name] = (this.heard[name] ?? []).filter((one) => one !== call); }
    tell(name) { for (const call of this.heard[name] ?? []) call(); }
    save_changes() { this.tell("saved"); }
  }
  // Texts that were computed for the picture as it starts say so once it has moved.
  const moved = (name) => {
    for (const text of document.querySelectorAll("[data-follows]"))
      if (text.dataset.follows.split(" ").includes(name)) text.classList.add("stale");
  };
  window.softscopeMount = (root) => {
    for (const place of root.querySelectorAll("[data-picture]:not([data-mounted])")) {
      place.dataset.mounted = "";
      const model = new Model(JSON.parse(place.dataset.state));
      window.softscopePictures[place.dataset.picture].render({ model, el: place });
      if (place.dataset.name) model.on("saved", () => moved(place.dataset.name));
    }
  };
  window.softscopeMount(document);
})();
