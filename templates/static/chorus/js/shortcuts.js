// Keys. Single letters work outside of fields only, and can be switched off (WCAG 2.1.4); Ctrl ones work everywhere.
import { on } from "./dom.js";

const OFF = "chorus-no-letters";
const sheet = () => document.getElementById("shortcuts");
let leader = -Infinity;

function isTyping(target) {
  return target instanceof Element && target.closest("input:not([type=range]), textarea, select, [contenteditable]");
}

function go(name) {
  document.querySelector(`.rail [data-go="${name}"], .tabs [data-go="${name}"]`)?.click();
}

function toggle(id) {
  const element = document.getElementById(id);
  element?.togglePopover?.();
}

const LETTERS = {
  "?": () => toggle("shortcuts"),
  "/": () => (document.querySelector("input[type=search]:not([data-picker-search])") ?? composer())?.focus(),
  n: () => composer()?.focus(),
  v: () => toggle("voice-picker"),
  i: () => toggle("palette"),
  p: () => document.querySelector("main .player-button, main [data-listen]")?.click(),
};

function composer() {
  return document.querySelector("form[data-studio] textarea[name=text]");
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.altKey || event.isComposing) return;
  if ((event.ctrlKey || event.metaKey) && event.key === "/") {
    event.preventDefault();
    toggle("shortcuts");
    return;
  }
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k" && document.getElementById("palette")) {
    event.preventDefault();
    toggle("palette");
    return;
  }
  if (event.ctrlKey || event.metaKey || isTyping(event.target) || localStorage.getItem(OFF)) return;
  if (document.querySelector("[popover]:popover-open") && event.key !== "?") return;
  if (performance.now() - leader < 1000 && "svhtr".includes(event.key)) {
    leader = -Infinity;
    event.preventDefault();
    go(event.key);
    return;
  }
  if (event.key === "g") leader = performance.now();
  else if (LETTERS[event.key]) {
    event.preventDefault();
    LETTERS[event.key]();
  }
});

on("change", "[data-letters]", (box) => {
  if (box.checked) localStorage.removeItem(OFF);
  else localStorage.setItem(OFF, "1");
});
sheet()?.addEventListener("beforetoggle", () => {
  const box = sheet().querySelector("[data-letters]");
  if (box) box.checked = !localStorage.getItem(OFF);
});
