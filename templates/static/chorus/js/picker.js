// The voice picker: radios in a popover. Search, language filter, and the button that shows the choice.
import { enhance } from "./dom.js";

enhance("[data-picker]", (picker) => {
  const form = picker.closest("form");
  const button = form?.querySelector("[data-picker-button]");
  const search = picker.querySelector("[data-picker-search]");
  const languages = [...picker.querySelectorAll("[data-picker-language]")];
  const choices = [...picker.querySelectorAll("[data-choice]")];
  const empty = picker.querySelector("[data-picker-empty]");

  const inGroup = (choice, group) => {
    if (group === "own") return choice.dataset.kind === "cloned";
    if (group === "favourite") return "favourite" in choice.dataset;
    return !group || choice.dataset.language === group;
  };

  const filter = () => {
    const words = (search?.value ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    const group = languages.find((radio) => radio.checked)?.value ?? "";
    let shown = 0;
    for (const choice of choices) {
      const matches = words.every((word) => choice.dataset.words.toLowerCase().includes(word));
      choice.hidden = !(inGroup(choice, group) && matches);
      if (!choice.hidden) shown += 1;
    }
    empty.hidden = shown > 0;
  };

  const show = (radio) => {
    if (!button) return;
    button.querySelector("[data-picker-name]").textContent = radio.dataset.name;
    button.querySelector("[data-picker-meta]").textContent = radio.dataset.meta;
    const orb = button.querySelector("[data-picker-orb]");
    orb.className = `orb orb-sm ${radio.dataset.tone}`;
  };

  // What was chosen before this runs: by a draft, or by a browser that goes back and fills the form in again.
  const follow = () => {
    const chosen = picker.querySelector("input[name=voice]:checked");
    if (chosen) show(chosen);
  };
  follow();
  window.addEventListener("pageshow", follow);

  search?.addEventListener("input", filter);
  search?.addEventListener("keydown", (event) => {
    if (event.key === "Enter") event.preventDefault();
  });
  for (const radio of languages) radio.addEventListener("change", filter);
  picker.addEventListener("change", (event) => {
    if (event.target.name === "voice") show(event.target);
  });
  // A pointer or Enter decides and closes; arrow keys only move, so that voices can be compared.
  picker.addEventListener("click", (event) => {
    const onLabel = event.target instanceof Element && event.target.closest("[data-choice] label");
    if (onLabel && event.detail > 0) picker.hidePopover?.();
  });
  picker.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.name === "voice") {
      event.preventDefault();
      picker.hidePopover?.();
    }
  });
  picker.addEventListener("toggle", (event) => {
    if (event.newState === "open") picker.querySelector("input[name=voice]:checked")?.focus({ preventScroll: false });
  });
});
