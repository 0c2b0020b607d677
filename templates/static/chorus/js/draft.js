// What stands in the studio's form is kept in this browser, person by person: it survives a reload, a closed tab, and
// its own submission, so that the last request can be changed a little and spoken again.
import { enhance, text } from "./dom.js";

const FIELDS = ["text", "language", "speed", "format", "instruction", "seed", "stream", "voice"];
const SAVE_MS = 300;

function read(form, name) {
  const field = form.elements.namedItem(name);
  if (!field) return undefined;
  if (field instanceof HTMLInputElement && field.type === "checkbox") return field.checked;
  return field.value;
}

function write(form, name, value) {
  const field = form.elements.namedItem(name);
  if (!field || value === undefined) return;
  // What was written while this script was still on its way stays.
  if (name === "text" && field.value !== field.defaultValue) return;
  if (field instanceof HTMLInputElement && field.type === "checkbox") field.checked = Boolean(value);
  else if (field instanceof HTMLSelectElement && ![...field.options].some((one) => one.value === value)) return;
  else if (name !== "voice" || [...form.querySelectorAll("[name=voice]")].some((one) => one.value === value)) {
    field.value = value;
  }
  const changed = field instanceof RadioNodeList ? [...field].find((one) => one.checked) : field;
  // Whoever shows the value beside the field (the picker's button, the slider) follows.
  changed?.dispatchEvent(new Event("change", { bubbles: true }));
}

enhance("form[data-studio]", (form) => {
  const key = `chorus-draft-${form.dataset.studio}`;
  const given = form.dataset.given;
  let draft = {};
  try {
    draft = JSON.parse(localStorage.getItem(key) ?? "{}");
  } catch {
    localStorage.removeItem(key);
  }
  if (given !== "all") {
    for (const name of FIELDS) {
      if (given === "settings" && name !== "text") continue;
      if (given === "voice" && name === "voice") continue;
      write(form, name, draft[name]);
    }
  }
  let timer = 0;
  const save = () => {
    clearTimeout(timer);
    const now = Object.fromEntries(FIELDS.map((name) => [name, read(form, name)]));
    try {
      localStorage.setItem(key, JSON.stringify(now));
      const saved = form.querySelector("[data-saved]");
      if (saved) saved.textContent = now.text ? text("draftSaved") : "";
    } catch {
      // A full or forbidden storage: then there is no draft, and everything else works.
    }
  };
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(save, SAVE_MS);
  };
  form.addEventListener("input", later);
  form.addEventListener("change", later);
  form.addEventListener("submit", save);
  window.addEventListener("pagehide", save);
});
