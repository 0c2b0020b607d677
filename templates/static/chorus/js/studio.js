// The studio's form: live count and outline, speed beside its slider, dice, Ctrl+Enter to submit.
import "./draft.js";
import { announce, enhance } from "./dom.js";

/** Asked what the text comes to when nobody has typed for so long. */
const OUTLINE_MS = 700;

/** Characters as they are billed: Unicode code points of the text in NFC. */
export function characters(value) {
  let count = 0;
  for (const _ of value.normalize("NFC")) count += 1;
  return count;
}

const numbers = new Intl.NumberFormat("en");

enhance("form[data-studio]", (form) => {
  const area = form.querySelector("textarea[name=text]");
  const update = () => {
    // Looked up each time: a submission brings a new count, with what is left by then.
    const count = form.querySelector("[data-count]");
    const now = count.querySelector("[data-count-now]");
    const over = count.querySelector("[data-count-over]");
    const value = characters(area.value);
    now.textContent = numbers.format(value);
    const tooLong = value - Number(count.dataset.limit);
    const noQuota = value - Number(count.dataset.remaining);
    count.classList.toggle("is-over", tooLong > 0 || noQuota > 0);
    const excess = tooLong > 0 ? tooLong : noQuota;
    const kind = tooLong > 0 ? "tooLong" : noQuota > 0 ? "noQuota" : "";
    over.hidden = !kind;
    const words = kind ? over.dataset[excess === 1 ? `${kind}One` : kind] : "";
    const said = words.replace("OVER", numbers.format(excess));
    if (over.textContent !== said) over.textContent = said;
  };
  area.addEventListener("input", update);
  update();
  form.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.elt !== form || !event.detail.successful) return;
    // What was wrong before is not wrong any more.
    for (const error of form.querySelectorAll(".field-error:not([data-count-over])")) error.remove();
    for (const field of form.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
    update();
  });

  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      // A key that is held down is pressed once.
      if (!event.repeat) form.requestSubmit();
    }
  });

  const dice = form.querySelector("[data-dice]");
  dice?.addEventListener("click", () => {
    const seed = form.querySelector("[name=seed]");
    seed.value = String(Math.floor(Math.random() * 2 ** 31));
    seed.dispatchEvent(new Event("input", { bubbles: true }));
    announce(seed.value);
  });
  form.querySelector("[data-clear]")?.addEventListener("click", () => {
    // As an edit, so that the browser's own undo brings it back.
    area.focus();
    area.select();
    if (!document.execCommand("delete")) area.value = "";
    area.dispatchEvent(new Event("input", { bubbles: true }));
  });

  let typing = 0;
  const outline = form.querySelector("#outline");
  const ask = () => {
    clearTimeout(typing);
    typing = setTimeout(() => outline?.dispatchEvent(new CustomEvent("chorus:outline")), OUTLINE_MS);
  };
  form.addEventListener("input", (event) => {
    if (["text", "language", "speed", "voice"].includes(event.target.name)) ask();
  });
  // Below an error the outline would only say the same once more.
  if (area.value.trim() && !form.querySelector(".field-error:not([hidden])")) ask();

  const slider = form.querySelector("input[type=range][name=speed]");
  const output = form.querySelector("[data-speed-output]");
  if (slider && output) {
    const say = () => {
      output.textContent = `${Number(slider.value).toFixed(2).replace(/0$/, "")}×`;
    };
    slider.addEventListener("input", say);
    say();
  }
});

/* Chromium and Safari draw the filled part of a slider from a custom property. */
export function fill(slider) {
  const min = Number(slider.min || 0);
  const max = Number(slider.max || 100);
  const share = max > min ? (Number(slider.value) - min) / (max - min) : 0;
  slider.style.setProperty("--filled", `${(share * 100).toFixed(2)}%`);
}

enhance("input.slider", (slider) => {
  fill(slider);
  slider.addEventListener("input", () => fill(slider));
});
