// Small helpers that the modules share.

const texts = document.getElementById("texts");

/** The page's own wording for `name` (see parts/script_texts.html). */
export function text(name) {
  return texts?.dataset[name] ?? "";
}

/** Call `listener` for each event of `type` on an element that matches `selector`, also on ones added later. */
export function on(type, selector, listener) {
  document.addEventListener(type, (event) => {
    const element = event.target instanceof Element ? event.target.closest(selector) : null;
    if (element) listener(element, event);
  });
}

/** Call `enhance` once for each element that matches, now and after htmx has put new ones on the page. */
export function enhance(selector, callback) {
  const seen = new WeakSet();
  const look = () => {
    for (const element of document.querySelectorAll(selector)) {
      if (!seen.has(element)) {
        seen.add(element);
        callback(element);
      }
    }
  };
  look();
  document.addEventListener("htmx:afterSettle", look);
  document.addEventListener("htmx:oobAfterSwap", look);
}

/** Say `words` to screen readers, politely. */
export function announce(words) {
  const announcer = document.getElementById("announcer");
  if (announcer && words) announcer.textContent = words;
}

/** Seconds as m:ss. */
export function clock(seconds) {
  const whole = Math.max(0, Math.round(Number.isFinite(seconds) ? seconds : 0));
  const rest = String(whole % 60).padStart(2, "0");
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes}:${rest}`;
  return `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${rest}`;
}
