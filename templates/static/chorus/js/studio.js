// The studio's form: live count, speed beside its slider, Ctrl+Enter to submit, a draft that survives a reload.
import { enhance } from "./dom.js";

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
    const value = characters(area.value.trim());
    now.textContent = numbers.format(value);
    const tooLong = value - Number(count.dataset.limit);
    const noQuota = value - Number(count.dataset.remaining);
    count.classList.toggle("is-over", tooLong > 0 || noQuota > 0);
    const words = tooLong > 0 ? over.dataset.tooLong : noQuota > 0 ? over.dataset.noQuota : "";
    over.hidden = !words;
    const said = words.replace("OVER", numbers.format(tooLong > 0 ? tooLong : noQuota));
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
      form.requestSubmit();
    }
  });

  const key = `chorus-draft-${form.dataset.studio}`;
  if (!area.value) {
    area.value = sessionStorage.getItem(key) ?? "";
    update();
  }
  area.addEventListener("input", () => sessionStorage.setItem(key, area.value));

  const slider = form.querySelector("input[type=range][name=speed]");
  const output = form.querySelector("[data-speed-output]");
  if (slider && output) {
    slider.addEventListener("input", () => {
      output.textContent = `${Number(slider.value).toFixed(2).replace(/0$/, "")}×`;
    });
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
