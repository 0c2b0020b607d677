// Uploading a recording: the drop area shows the file and plays it, and htmx's progress fills the bar.
import { clock, enhance, text } from "./dom.js";

enhance("[data-drop]", (drop) => {
  const input = drop.querySelector("input[type=file]");
  const name = drop.querySelector("[data-drop-name]");
  for (const type of ["dragenter", "dragover"]) drop.addEventListener(type, () => drop.classList.add("is-over"));
  for (const type of ["dragleave", "drop"]) drop.addEventListener(type, () => drop.classList.remove("is-over"));
  const show = () => {
    const file = input.files?.[0];
    if (!file) return;
    const megabytes = (file.size / 1024 / 1024).toFixed(1);
    name.textContent = `${file.name} · ${megabytes} MB`;
    const audio = new Audio();
    audio.preload = "metadata";
    audio.addEventListener("loadedmetadata", () => {
      // A file that was chosen before may be read later than the one that is there now.
      const current = input.files?.[0] === file;
      if (current && Number.isFinite(audio.duration)) name.textContent = `${file.name} · ${clock(audio.duration)} · ${megabytes} MB`;
      URL.revokeObjectURL(audio.src);
    });
    audio.src = URL.createObjectURL(file);
  };
  input.addEventListener("change", show);
  input.addEventListener("chorus:taken", show);
  // Chosen before this script ran, or kept by the browser across a reload.
  show();
});

enhance("form[data-upload]", (form) => {
  const box = form.querySelector("[data-upload-progress]");
  const bar = box?.querySelector("progress");
  const words = box?.querySelector("[data-upload-words]");
  if (!box) return;
  form.addEventListener("htmx:beforeRequest", () => {
    box.hidden = false;
    bar.value = 0;
  });
  form.addEventListener("htmx:xhr:progress", (event) => {
    const { loaded, total } = event.detail;
    if (!total) return;
    const percent = Math.round((loaded / total) * 100);
    bar.value = percent;
    words.textContent = percent < 100 ? text("uploading").replace("PERCENT", percent) : text("checking");
  });
  form.addEventListener("htmx:afterRequest", () => {
    box.hidden = true;
  });
});
