// Copy buttons: what is copied stands in the element that data-copy names.
import { announce, on, text } from "./dom.js";

on("click", "[data-copy]", async (button) => {
  const source = document.getElementById(button.dataset.copy);
  if (!source) return;
  const label = button.querySelector("[data-copy-label]") ?? button;
  const before = label.textContent;
  try {
    await navigator.clipboard.writeText(source.textContent.trim());
  } catch {
    // Without a secure context there is no clipboard: select the text, so that the keyboard can copy it.
    getSelection()?.selectAllChildren(source);
    return;
  }
  label.textContent = text("copied");
  announce(text("copied"));
  setTimeout(() => {
    label.textContent = before;
  }, 2000);
});
