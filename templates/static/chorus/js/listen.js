// Hearing a request while it is made. The sound belongs to the page and not to the card, which is replaced with each
// piece of news; the dock at the bottom says what plays and stops it.
import { announce, enhance, on } from "./dom.js";
import { playOnly } from "./sound.js";
import { draw } from "./wave.js";

/** A bar of the growing waveform for so many milliseconds of sound, and the bars that fill the dock at first. */
const BAR_MS = 150;
const BARS = 60;

const MP3 = "audio/mpeg";
/** It begins with so many bytes, three seconds: the first sentence alone would be over before the second one is there. */
const AHEAD = 24_000;

const audio = new Audio();
audio.preload = "none";
let playing = "";
let levels = [];
let ears = null;
let feeding = null;

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
  const appears = box.hidden && state !== "off";
  box.hidden = state === "off";
  if (state === "off") return;
  const words = box.querySelector("[data-dock-words]");
  words.textContent = box.dataset[state];
  box.querySelector("[data-dock-title]").textContent = heading(playing);
  // Only now is it as wide as it will be.
  if (appears) makeRoom(box);
}

/** The next text is submitted while this one plays: the button for it is not left under the dock. */
function makeRoom(box) {
  const button = document.getElementById("speak")?.getBoundingClientRect();
  const own = box.getBoundingClientRect();
  if (!button || button.right < own.left || button.bottom < own.top || button.top > own.bottom) return;
  window.scrollBy({ top: button.bottom - own.top + 12 });
}

function heading(id) {
  return document.querySelector(`#request-${CSS.escape(id)} .request-text`)?.textContent.trim() ?? "";
}

function mark() {
  for (const button of document.querySelectorAll("[data-listen]")) {
    button.setAttribute("aria-pressed", String(button.dataset.listen === playing));
  }
}

/** Fed by hand: an element that loads by itself takes 32 kB at once, so that the end of a sentence waits for the next. */
function open(address) {
  feeding?.abort();
  feeding = new AbortController();
  const { signal } = feeding;
  if (!window.MediaSource?.isTypeSupported(MP3)) {
    audio.src = address;
    return;
  }
  const media = new MediaSource();
  const place = URL.createObjectURL(media);
  media.addEventListener(
    "sourceopen",
    () => {
      URL.revokeObjectURL(place);
      feed(media, address, signal).catch(() => {
        if (!signal.aborted) stop();
      });
    },
    { once: true },
  );
  audio.src = place;
}

async function feed(media, address, signal) {
  const answer = await fetch(address, { signal });
  if (answer.headers.get("Content-Type") !== MP3) {
    // It is done by now, as a file of another kind; or there is nothing to hear, and the card says why.
    if (!answer.ok || answer.status === 204) throw new Error(answer.statusText);
    audio.src = answer.url;
    playOnly(audio);
    return;
  }
  const buffer = media.addSourceBuffer(MP3);
  const reader = answer.body.getReader();
  let kept = [];
  let size = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    kept.push(part.value);
    size += part.value.length;
    if (size < AHEAD) continue;
    for (const bytes of kept) await append(buffer, bytes, signal);
    kept = [];
  }
  for (const bytes of kept) await append(buffer, bytes, signal);
  if (media.readyState === "open") media.endOfStream();
}

async function append(buffer, bytes, signal) {
  for (;;) {
    signal.throwIfAborted();
    try {
      const added = new Promise((end) => buffer.addEventListener("updateend", end, { once: true }));
      buffer.appendBuffer(bytes);
      await added;
      return;
    } catch (error) {
      if (error.name !== "QuotaExceededError") throw error;
      // Far ahead of the listener: there is room again when some of it was heard.
      await new Promise((end) => setTimeout(end, 1000));
    }
  }
}

/** Play the request as it is made, from its beginning. */
export function listen(id, address) {
  playing = id;
  levels = [];
  open(address);
  show("waiting");
  mark();
  playOnly(audio);
}

function stop() {
  playing = "";
  feeding?.abort();
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
audio.addEventListener("waiting", () => show(audio.currentTime > 0 ? "more" : "waiting"));
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
