// Everything that sounds: samples behind a voice's circle, and the player. One thing plays at a time.
import { enhance, clock, on, text } from "./dom.js";
import { fill } from "./studio.js";
import { toast } from "./toast.js";

let playing = null;

/** Play `audio`, and nothing else. */
export function playOnly(audio) {
  if (playing && playing !== audio) playing.pause();
  playing = audio;
  const started = audio.play();
  started?.catch((error) => {
    if (error.name !== "AbortError") toast(text("playFailed"), "error");
  });
}

const sample = new Audio();
sample.preload = "none";
let sampleButton = null;

function release() {
  sampleButton?.setAttribute("aria-pressed", "false");
  sampleButton = null;
}

sample.addEventListener("ended", release);
sample.addEventListener("pause", release);

on("click", "[data-sample]", (button) => {
  if (button === sampleButton) {
    sample.pause();
    return;
  }
  release();
  sample.src = button.dataset.sample;
  playOnly(sample);
  sampleButton = button;
  button.setAttribute("aria-pressed", "true");
});

// Where a voice is chosen from a list, the button beside it plays the one that is chosen.
on("change", "[data-voice-select]", (select) => {
  const button = select.parentElement.querySelector("[data-sample]");
  if (button === sampleButton) sample.pause();
  button.dataset.sample = select.selectedOptions[0].dataset.sounds;
  button.hidden = !button.dataset.sample;
});

function shape(name) {
  const source = document.querySelector("svg.icon use")?.getAttribute("href") ?? "";
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", `icon icon-${name}`);
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", source.replace(/#.*$/, `#${name}`));
  svg.append(use);
  return svg;
}

/** Put button, slider and time beside the `<audio>` in `player`. */
export function mount(player) {
  const audio = player.querySelector("audio");
  const known = Number(player.dataset.duration) || 0;
  const length = () => (Number.isFinite(audio.duration) && audio.duration > 0 ? audio.duration : known);

  const button = document.createElement("button");
  button.type = "button";
  button.className = "player-button";
  button.append(shape("play"), shape("pause"));

  const slider = document.createElement("input");
  slider.type = "range";
  slider.className = "slider";
  slider.min = "0";
  slider.step = "0.1";
  slider.value = "0";
  slider.setAttribute("aria-label", text("seek"));

  const time = document.createElement("span");
  time.className = "player-time";

  audio.removeAttribute("controls");
  player.append(button, slider, time);

  const draw = () => {
    slider.max = String(length() || 1);
    slider.value = String(audio.currentTime);
    slider.setAttribute("aria-valuetext", `${clock(audio.currentTime)} / ${clock(length())}`);
    time.textContent = `${clock(audio.currentTime)} / ${clock(length())}`;
    const on = !audio.paused && !audio.ended;
    button.setAttribute("aria-pressed", String(on));
    button.setAttribute("aria-label", text(on ? "pause" : "play"));
    fill(slider);
  };
  for (const name of ["play", "pause", "ended", "timeupdate", "loadedmetadata", "seeked"]) {
    audio.addEventListener(name, draw);
  }
  audio.addEventListener("error", () => {
    if (playing === audio) toast(text("playFailed"), "error");
  });
  button.addEventListener("click", () => (audio.paused ? playOnly(audio) : audio.pause()));
  slider.addEventListener("input", () => {
    audio.currentTime = Number(slider.value);
    draw();
  });
  draw();
}

enhance("[data-player]", mount);
