// Hearing a request while it is made. The sound belongs to the page and not to the card, which is replaced with each
// piece of news; the dock at the bottom says what plays and stops it.
import { announce, enhance, on } from "./dom.js";
import { playOnly } from "./sound.js";
import { draw } from "./wave.js";

/** A bar of the growing waveform for so many milliseconds of sound, and the bars that fill the dock at first. */
const BAR_MS = 150;
const BARS = 60;

const audio = new Audio();
audio.preload = "none";
let playing = "";
let levels = [];
let ears = null;

/** What is heard is also measured, where the browser allows it without a press; else there is sound and no waveform. */
async function measure() {
  if (ears || !("AudioContext" in window)) return;
  const context = new AudioContext();
  // A context that does not run would swallow the sound.
  if (context.state !== "running") await Promise.race([context.resume(), new Promise((end) => setTimeout(end, 500))]);
  if (context.state !== "running") {
    context.close();
    return;
  }
  ears = context.createAnalyser();
  ears.fftSize = 4096;
  context.createMediaElementSource(audio).connect(ears).connect(context.destination);
}

setInterval(() => {
  const canvas = dock()?.querySelector("canvas");
  if (!ears || !playing || audio.paused || !canvas || audio.readyState < 3) return;
  const samples = new Float32Array(ears.fftSize);
  ears.getFloatTimeDomainData(samples);
  levels.push(Math.max(...samples.map(Math.abs)));
  const empty = Math.max(0, BARS - levels.length);
  draw(canvas, [...levels, ...Array(empty).fill(0)], levels.length / (levels.length + empty));
}, BAR_MS);

const dock = () => document.getElementById("dock");

function show(state) {
  const box = dock();
  if (!box) return;
  box.hidden = state === "off";
  if (state === "off") return;
  const words = box.querySelector("[data-dock-words]");
  words.textContent = box.dataset[state];
  box.querySelector("[data-dock-title]").textContent = heading(playing);
}

function heading(id) {
  return document.querySelector(`#request-${CSS.escape(id)} .request-text`)?.textContent.trim() ?? "";
}

function mark() {
  for (const button of document.querySelectorAll("[data-listen]")) {
    button.setAttribute("aria-pressed", String(button.dataset.listen === playing));
  }
}

/** Play the request as it is made, from its beginning. */
export function listen(id, address) {
  playing = id;
  levels = [];
  audio.src = address;
  show("waiting");
  mark();
  playOnly(audio);
}

function stop() {
  playing = "";
  audio.pause();
  audio.removeAttribute("src");
  show("off");
  mark();
}

audio.addEventListener("playing", () => {
  show("playing");
  measure();
  announce(dock()?.dataset.playing);
});
audio.addEventListener("waiting", () => show("waiting"));
audio.addEventListener("ended", stop);
audio.addEventListener("pause", () => {
  if (playing && !audio.ended) stop();
});
// Nothing (more) to hear: the card says why.
audio.addEventListener("error", () => {
  if (playing) stop();
});

on("click", "[data-listen]", (button) => {
  if (button.dataset.listen === playing) stop();
  else listen(button.dataset.listen, button.dataset.address);
});
on("click", "[data-dock-stop]", stop);
enhance("[data-listen]", mark);

// What was just submitted is heard as soon as there is something to hear, unless something else plays.
document.addEventListener("htmx:afterSettle", (event) => {
  const form = document.querySelector("form[data-studio]");
  if (event.detail.requestConfig?.elt !== form || !event.detail.successful) return;
  const wanted = form?.querySelector("[name=stream]")?.checked;
  const button = document.querySelector("#requests [data-listen]");
  if (wanted && button && !playing && !button.dataset.heard) {
    button.dataset.heard = "1";
    listen(button.dataset.listen, button.dataset.address);
  }
});
