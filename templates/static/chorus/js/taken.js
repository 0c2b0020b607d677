// The recording that is about to become a voice: played back, judged by the server, and kept when the form comes back
// with an error (a browser empties a file field that is put onto the page anew).
import { announce, enhance, text } from "./dom.js";
import { mount, playOnly } from "./sound.js";

/** Of more than so many seconds only a part is used, and what was read is not word for word what is in it. */
const WHOLE_SECONDS = 15;

let kept = null;
let checking = null;

/** Make `file` the form's recording; `seconds` long where that is known, and `reading` what was read aloud in it. */
export function take(form, file, { seconds = 0, reading = "", source = "file" } = {}) {
  kept = { file, seconds, reading, source, verdict: "" };
  const input = form.querySelector("input[type=file]");
  const transfer = new DataTransfer();
  transfer.items.add(file);
  input.files = transfer.files;
  const transcript = form.querySelector("[name=transcript]");
  if (reading && (!transcript.value || transcript.dataset.suggested)) suggest(transcript, reading);
  show(form);
  check(form);
}

/** Play the recording that was taken, where there is one. */
export function playTaken(form) {
  const audio = form.querySelector("[data-taken-player] audio");
  if (audio) playOnly(audio);
}

function suggest(transcript, words) {
  transcript.value = words;
  transcript.dataset.suggested = "1";
  asRead(transcript);
}

/** What was to be read need not be what was said: as long as nobody has changed it, the form says where it is from. */
function asRead(transcript) {
  const note = transcript.form.querySelector("[data-as-read]");
  if (note) note.hidden = !transcript.dataset.suggested || !kept?.reading || transcript.value !== kept.reading;
}

function show(form) {
  const box = form.querySelector("[data-taken]");
  const player = form.querySelector("[data-taken-player]");
  const old = player.querySelector("audio");
  if (old) {
    old.pause();
    URL.revokeObjectURL(old.src);
  }
  const audio = document.createElement("audio");
  audio.preload = "metadata";
  audio.src = URL.createObjectURL(kept.file);
  player.dataset.duration = String(kept.seconds);
  player.replaceChildren(audio);
  mount(player);
  box.hidden = false;
}

async function check(form) {
  checking?.abort();
  checking = new AbortController();
  const place = form.querySelector("[data-verdict]");
  const asked = kept;
  const words = document.createElement("p");
  words.className = "small soft";
  words.textContent = text("listening");
  place.replaceChildren(words);
  const body = new FormData();
  body.set("audio", kept.file, kept.file.name);
  body.set("language", form.querySelector("[name=language]").value);
  body.set("csrfmiddlewaretoken", form.querySelector("[name=csrfmiddlewaretoken]").value);
  try {
    const answer = await fetch(form.dataset.check, {
      method: "POST",
      body,
      signal: checking.signal,
      headers: { "HX-Request": "true" },
    });
    const html = answer.ok ? await answer.text() : "";
    if (kept !== asked) return;
    kept.verdict = html;
    verdict(form);
    announce(place.textContent.trim());
  } catch (error) {
    // Nothing is lost: the same is said when the voice is made.
    if (error.name !== "AbortError") place.replaceChildren();
  }
}

function verdict(form) {
  const place = form.querySelector("[data-verdict]");
  const parsed = new DOMParser().parseFromString(kept.verdict, "text/html");
  place.replaceChildren(...parsed.body.children);
  const told = place.firstElementChild;
  const transcript = form.querySelector("[name=transcript]");
  if (!told?.dataset.whole || (transcript.value && !transcript.dataset.suggested)) return;
  if (told.dataset.transcript && !(kept.reading && Number(told.dataset.whole) <= WHOLE_SECONDS)) {
    suggest(transcript, told.dataset.transcript);
  } else if (kept.reading && Number(told.dataset.whole) > WHOLE_SECONDS) {
    suggest(transcript, "");
  }
}

enhance("form[data-upload]", (form) => {
  const input = form.querySelector("input[type=file]");
  input.addEventListener("change", () => {
    const file = input.files?.[0];
    if (file && file !== kept?.file) take(form, file);
  });
  form.addEventListener("input", (event) => {
    if (event.target.name !== "transcript") return;
    delete event.target.dataset.suggested;
    asRead(event.target);
  });
  form.addEventListener("htmx:beforeRequest", () => checking?.abort());

  const panels = form.querySelectorAll("[data-source-panel]");
  const choose = (source) => {
    for (const panel of panels) panel.hidden = panel.dataset.sourcePanel !== source;
  };
  const radios = [...form.querySelectorAll("[data-source] input")];
  for (const radio of radios) radio.addEventListener("change", () => choose(radio.value));
  if (kept && !input.files.length) {
    const transfer = new DataTransfer();
    transfer.items.add(kept.file);
    input.files = transfer.files;
    input.dispatchEvent(new Event("chorus:taken"));
    show(form);
    if (kept.verdict) verdict(form);
  }
  for (const radio of radios) radio.checked = radio.value === (kept?.source ?? "microphone");
  choose(kept?.source ?? "microphone");
  if (!kept && input.files.length) take(form, input.files[0]);
});
