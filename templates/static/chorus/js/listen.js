// Hearing a request while it is made. The sound belongs to the page and not to the card, which is replaced with each
// piece of news; the dock at the bottom says what plays and stops it.
import { announce, enhance, on } from "./dom.js";
import { playOnly } from "./sound.js";

const audio = new Audio();
audio.preload = "none";
let playing = "";

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
