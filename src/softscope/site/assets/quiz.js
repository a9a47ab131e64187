// Judge first: the measurement opens with the answer.
(() => {
  const puzzles = [...document.querySelectorAll(".puzzle")], tally = document.querySelector(".tally");
  const count = () => {
    const given = puzzles.filter((one) => one.dataset.given);
    const right = given.filter((one) => one.dataset.given === one.dataset.verdict);
    tally.textContent = tally.dataset.says.replace("{given}", given.length).replace("{right}", right.length);
  };
  for (const puzzle of puzzles) {
    const told = puzzle.querySelector(".told"), buttons = [...puzzle.querySelectorAll(".choices button")];
    for (const button of buttons) button.addEventListener("click", () => {
      puzzle.dataset.given = button.value;
      for (const one of buttons) one.setAttribute("aria-pressed", one === button);
      const right = button.value === puzzle.dataset.verdict;
      const verdict = buttons.find((one) => one.value === puzzle.dataset.verdict).textContent;
      told.textContent = (right ? told.dataset.right : told.dataset.wrong) + verdict;
      told.className = `told ${right ? "good" : "bad"}`;
      puzzle.querySelector("details").open = true;
      count();
    });
  }
  count();
})();
