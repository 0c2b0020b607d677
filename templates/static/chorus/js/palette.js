// The palette: tags go to the cursor or around the selection, readings into its place, instructions into their field.
import { enhance, on } from "./dom.js";

const area = () => document.querySelector("form[data-studio] textarea[name=text]");
let start = 0;
let end = 0;

function remember() {
  const field = area();
  if (field) [start, end] = [field.selectionStart, field.selectionEnd];
}

function put(before, after = "", keep = true) {
  const field = area();
  const selected = keep ? field.value.slice(start, end) : "";
  field.focus();
  field.setSelectionRange(start, end);
  const words = before + selected + after;
  // As if it were typed, so that the browser's own undo takes it back.
  if (!document.execCommand("insertText", false, words)) {
    field.setRangeText(words, start, end, "end");
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
  const cursor = after && !selected ? start + before.length : start + words.length;
  field.setSelectionRange(cursor, cursor);
  remember();
}

function close() {
  document.getElementById("palette")?.hidePopover?.();
  area()?.focus();
}

on("click", "[data-insert]", (button) => {
  [start, end] = [end, end];
  put(button.dataset.insert);
  if (!button.closest(".chart")) close();
});
on("click", "[data-wrap]", (button) => {
  put(`<${button.dataset.wrap}>`, `</${button.dataset.wrap}>`);
  close();
});
on("click", "[data-replace]", (button) => {
  put(button.dataset.replace, "", false);
  close();
});
on("click", "[data-instruct]", (button) => {
  const field = document.querySelector("form[data-studio] [name=instruction]");
  field.value = button.dataset.instruct;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  close();
  field.focus();
});

enhance("[data-palette]", (palette) => {
  const field = area();
  for (const type of ["select", "keyup", "pointerup", "blur", "input"]) field.addEventListener(type, remember);
  palette.addEventListener("beforetoggle", async (event) => {
    if (event.newState !== "open") return;
    const place = palette.querySelector("[data-readings-place]");
    const selected = field.value.slice(start, end).trim();
    const answer = await fetch(`${palette.dataset.readings}?text=${encodeURIComponent(selected)}`);
    if (!answer.ok) return;
    const parsed = new DOMParser().parseFromString(await answer.text(), "text/html");
    place.replaceChildren(...parsed.body.childNodes);
  });
});
