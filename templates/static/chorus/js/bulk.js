// Many requests at once: the bar says how many are ticked, and asks before it deletes.
import { enhance } from "./dom.js";

enhance("[data-bulk]", (form) => {
  const words = form.querySelector("[data-bulk-words]");
  const all = form.querySelector("[data-tick-all]");
  const ticks = () => [...document.querySelectorAll("[data-tick]")];
  const show = () => {
    const chosen = ticks().filter((tick) => tick.checked).length;
    words.textContent = chosen ? form.dataset.words.replace("NUMBER", chosen) : "";
    for (const button of form.querySelectorAll("button")) button.disabled = !chosen;
    all.checked = chosen > 0 && chosen === ticks().length;
    all.indeterminate = chosen > 0 && !all.checked;
  };
  all.addEventListener("change", () => {
    for (const tick of ticks()) tick.checked = all.checked;
    show();
  });
  document.addEventListener("change", (event) => {
    if (event.target.matches?.("[data-tick]")) show();
  });
  document.addEventListener("htmx:afterSettle", show);
  form.addEventListener("submit", (event) => {
    const question = event.submitter?.dataset.confirm;
    if (question && !confirm(question)) event.preventDefault();
  });
  show();
});
