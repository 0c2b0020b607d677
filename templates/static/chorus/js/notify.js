// A notice of the browser when a request ends and the page is not looked at, for who wants it (their account says so).
import { enhance, on } from "./dom.js";

const ENDS = ["succeeded", "failed"];
const wanted = Boolean(document.querySelector("[data-notify]")) && "Notification" in window;
const known = new Map();

// Browsers ask only after a press: the first one that submits something is the moment at which it makes sense.
on("click", "#speak", () => {
  if (wanted && Notification.permission === "default") Notification.requestPermission();
});

enhance("[data-request][data-status]", (card) => {
  const before = known.get(card.dataset.request);
  known.set(card.dataset.request, card.dataset.status);
  if (!wanted || !document.hidden || !before || before === card.dataset.status) return;
  if (!ENDS.includes(card.dataset.status) || Notification.permission !== "granted") return;
  const notice = new Notification("Chorus", { body: card.dataset.announce, tag: card.dataset.request });
  notice.addEventListener("click", () => {
    window.focus();
    notice.close();
  });
});
