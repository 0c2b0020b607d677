// Requests that are still under way. The server's event stream is a doorbell: on each event the card is fetched anew.
// Without a stream (an old proxy, a network that cuts it) the same cards are fetched every few seconds.
import { announce, enhance } from "./dom.js";

const POLL_SECONDS = 2.5;
const REFRESH_GAP = 400;

let streaming = false;
const waiting = new Map();

function cards() {
  return document.querySelectorAll("[data-live]");
}

function refresh(card) {
  const id = card.dataset.request;
  if (waiting.has(id)) return;
  // Events come in bursts (one a segment): at most one fetch a card every REFRESH_GAP milliseconds.
  waiting.set(
    id,
    setTimeout(() => {
      waiting.delete(id);
      const now = document.getElementById(`request-${id}`);
      if (now?.hasAttribute("data-live")) now.dispatchEvent(new CustomEvent("chorus:refresh"));
    }, REFRESH_GAP),
  );
}

function poll() {
  if (!streaming && !document.hidden) for (const card of cards()) refresh(card);
}

const address = document.querySelector("[data-events]")?.dataset.events;
if (address && "EventSource" in window) {
  let source = null;
  const connect = () => {
    source = new EventSource(address);
    source.addEventListener("open", () => {
      streaming = true;
      for (const card of cards()) refresh(card);
    });
    source.addEventListener("error", () => {
      streaming = false;
    });
    source.addEventListener("request", (event) => {
      const id = event.data.startsWith("{") ? JSON.parse(event.data).id : event.data;
      const card = document.getElementById(`request-${id}`);
      if (card) refresh(card);
    });
    // The queue moved: every waiting card may have another place now.
    source.addEventListener("queue", () => {
      for (const card of document.querySelectorAll('[data-live][data-status="queued"]')) refresh(card);
    });
  };
  connect();
  window.addEventListener("pagehide", () => source?.close());
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) connect();
  });
}

setInterval(poll, POLL_SECONDS * 1000);
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) for (const card of cards()) refresh(card);
});

// A search may have replaced the card while its news were on the way: there is no place for them any more. (Listened for
// on the card itself: from one that is off the page no event rises to the document.)
enhance("[data-live]", (card) => {
  card.addEventListener("htmx:beforeSwap", (event) => {
    if (!card.isConnected) event.detail.shouldSwap = false;
  });
});

// A fetched card is a new element, so a live region inside it would stay silent: one that stays says the news.
const said = new Map();
enhance("[data-request]", (card) => {
  const id = card.dataset.request;
  const words = card.dataset.announce;
  if (words && said.has(id) && said.get(id) !== words) announce(words);
  said.set(id, words);
});
