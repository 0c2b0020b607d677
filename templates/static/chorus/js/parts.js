// The parts of a recording: a press on one plays it and no more; the one that is heard is marked.
import { enhance, on } from "./dom.js";
import { playOnly } from "./sound.js";

let stop = null;

on("click", "[data-play-part]", (button) => {
  const audio = document.querySelector(`#${CSS.escape(button.dataset.playPart)} audio`);
  const part = button.closest("[data-part]");
  if (!audio || !part) return;
  if (stop) audio.removeEventListener("timeupdate", stop);
  if (button.getAttribute("aria-pressed") === "true" && !audio.paused) {
    audio.pause();
    return;
  }
  const end = Number(part.dataset.end);
  stop = () => {
    if (audio.currentTime < end) return;
    audio.pause();
    audio.removeEventListener("timeupdate", stop);
  };
  audio.addEventListener("timeupdate", stop);
  audio.currentTime = Number(part.dataset.start);
  playOnly(audio);
});

enhance("[data-play-part]", (button) => {
  const part = button.closest("[data-part]");
  const audio = document.querySelector(`#${CSS.escape(button.dataset.playPart)} audio`);
  if (!audio) return;
  const start = Number(part.dataset.start);
  const end = Number(part.dataset.end);
  const mark = () => {
    const heard = !audio.paused && audio.currentTime >= start && audio.currentTime < end;
    button.setAttribute("aria-pressed", String(heard));
  };
  for (const type of ["timeupdate", "play", "pause", "seeked"]) audio.addEventListener(type, mark);
});
