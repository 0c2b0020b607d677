// Choosing the part of a recording: a press on a stretch fills in its seconds and plays it.
import { on } from "./dom.js";
import { playOnly } from "./sound.js";

let stop = null;

on("click", "[data-window]", (button) => {
  const form = button.closest("form");
  const start = Number(button.dataset.start);
  const end = Number(button.dataset.end);
  form.querySelector("[name=start]").value = start.toFixed(1);
  form.querySelector("[name=end]").value = end.toFixed(1);
  for (const other of form.querySelectorAll("[data-window]")) {
    other.setAttribute("aria-pressed", String(other === button));
  }
  const audio = document.querySelector("[data-original] audio");
  if (!audio) return;
  if (stop) audio.removeEventListener("timeupdate", stop);
  stop = () => {
    if (audio.currentTime >= end) {
      audio.pause();
      audio.removeEventListener("timeupdate", stop);
    }
  };
  audio.addEventListener("timeupdate", stop);
  audio.currentTime = start;
  playOnly(audio);
});
