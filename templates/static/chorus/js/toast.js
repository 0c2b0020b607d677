// Messages in the corner. They stay for as long as they take to read, and while they are pointed at or focused.
import { announce, enhance, on, text } from "./dom.js";

const SECONDS = { error: 12, success: 5, info: 7 };

/** Show `words` as a message; `kind` is info, success or error. */
export function toast(words, kind = "info") {
  const toasts = document.getElementById("toasts");
  if (!toasts || !words) return;
  if ([...toasts.querySelectorAll("p")].some((shown) => shown.textContent === words)) return;
  const box = document.createElement("div");
  box.className = `toast toast-${kind} toast-bare`;
  box.dataset.toast = "";
  const paragraph = document.createElement("p");
  paragraph.textContent = words;
  const close = document.createElement("button");
  close.type = "button";
  close.className = "button button-plain button-sm";
  close.dataset.dismiss = "";
  close.textContent = text("close");
  box.append(paragraph, close);
  toasts.append(box);
  keep(box);
}

function keep(box) {
  if (box.dataset.kept) return;
  box.dataset.kept = "1";
  const kind = Object.keys(SECONDS).find((name) => box.classList.contains(`toast-${name}`)) ?? "info";
  let timer = 0;
  const start = () => {
    clearTimeout(timer);
    timer = setTimeout(() => box.remove(), SECONDS[kind] * 1000);
  };
  const stop = () => clearTimeout(timer);
  box.addEventListener("pointerenter", stop);
  box.addEventListener("focusin", stop);
  box.addEventListener("pointerleave", start);
  box.addEventListener("focusout", start);
  start();
}

enhance("[data-toast]", keep);
on("click", "[data-dismiss]", (button) => button.closest("[data-toast]")?.remove());

document.addEventListener("htmx:sendError", () => toast(text("offline"), "error"));
document.addEventListener("htmx:responseError", (event) => {
  // Our own errors bring their message along; anything else (a proxy's page) does not.
  const answer = event.detail.xhr?.responseText ?? "";
  if (!answer.includes("data-toast") && !answer.includes("data-answer")) toast(text("serverError"), "error");
});
document.addEventListener("chorus:announce", (event) => announce(event.detail.value));
