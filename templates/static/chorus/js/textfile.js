// A file that is read into a field, to be looked at before it is sent.
import { on } from "./dom.js";

on("change", "[data-read-into]", async (input) => {
  const file = input.files?.[0];
  const field = document.getElementById(input.dataset.readInto);
  if (!file || !field) return;
  field.value = await file.text();
  field.dispatchEvent(new Event("input", { bubbles: true }));
  field.focus();
  input.value = "";
});
