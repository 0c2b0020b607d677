// Recording a voice in the browser: permission, three seconds to breathe in, a sentence to read, a level to watch.
// The sound goes into the form's file field, so that everything after it is the same as for an upload.
import { announce, clock, enhance } from "./dom.js";
import { Scope } from "./scope.js";
import { take } from "./taken.js";

const COUNT_SECONDS = 3;
/** Peaks of a healthy recording lie between these, of full scale. */
const QUIET = 0.06;
const LOUD = 0.97;
const WORDS_MS = 1500;
const TYPES = ["audio/webm;codecs=opus", "audio/mp4", "audio/ogg;codecs=opus"];
const ENDINGS = { "audio/webm": "webm", "audio/mp4": "m4a", "audio/ogg": "ogg" };
/** A clone copies what it is given: no echo canceller, noise gate or automatic gain between the mouth and the file. */
const UNTOUCHED = { echoCancellation: false, noiseSuppression: false, autoGainControl: false, channelCount: 1 };

class Recorder {
  constructor(box) {
    this.box = box;
    this.form = box.closest("form");
    this.button = box.querySelector("[data-record]");
    this.label = box.querySelector("[data-record-label]");
    this.words = box.querySelector("[data-record-words]");
    this.now = box.querySelector("[data-record-now]");
    this.count = box.querySelector("[data-scope-count]");
    this.limit = Number(box.querySelector("[data-record-time]").dataset.limit);
    this.device = box.querySelector("[data-record-device]");
    this.chosen = 0;
    this.button.addEventListener("click", () => this.press());
    this.box.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.state === "counting") this.close("idle");
    });
    this.device.addEventListener("change", () => localStorage.setItem("chorus-microphone", this.device.value));
    box.querySelector("[data-reading-next]").addEventListener("click", () => this.read(this.chosen + 1));
    this.form.querySelector("[name=language]").addEventListener("change", () => this.read(0));
    this.read(0);
  }

  get state() {
    return this.box.dataset.state;
  }

  set state(name) {
    this.box.dataset.state = name;
    const { start, stop, again, cancel } = this.label.dataset;
    this.label.textContent = { idle: start, asking: cancel, counting: cancel, recording: stop, done: again }[name];
  }

  read(index) {
    const language = this.form.querySelector("[name=language]").value;
    const source = this.box.querySelector(`template[data-reading="${CSS.escape(language)}"]`);
    const sentences = [...(source?.content.children ?? [])];
    if (!sentences.length) return;
    this.chosen = index % sentences.length;
    const place = this.box.querySelector("[data-reading-text]");
    place.textContent = sentences[this.chosen].textContent;
    place.lang = sentences[this.chosen].lang;
    this.reading = place.textContent;
  }

  press() {
    if (this.state === "recording") this.media.stop();
    else if (this.state === "asking" || this.state === "counting") this.close("idle");
    else this.start();
  }

  say(name) {
    this.words.textContent = this.box.dataset[name] ?? "";
    this.words.classList.toggle("failed", ["refused", "missing", "busy", "insecure"].includes(name));
  }

  async start() {
    if (!navigator.mediaDevices?.getUserMedia || !window.MediaRecorder) {
      this.say("insecure");
      return;
    }
    this.state = "asking";
    this.say("allow");
    const wanted = localStorage.getItem("chorus-microphone");
    let stream;
    try {
      const audio = wanted ? { ...UNTOUCHED, deviceId: { ideal: wanted } } : UNTOUCHED;
      stream = await navigator.mediaDevices.getUserMedia({ audio });
    } catch (error) {
      this.close("idle");
      const reasons = { NotAllowedError: "refused", SecurityError: "refused", NotFoundError: "missing" };
      this.say(reasons[error.name] ?? "busy");
      return;
    }
    this.stream = stream;
    if (this.state !== "asking") {
      this.close("idle");
      return;
    }
    this.listDevices();
    this.context = new AudioContext();
    const analyser = this.context.createAnalyser();
    analyser.fftSize = 2048;
    this.context.createMediaStreamSource(stream).connect(analyser);
    this.scope?.stop();
    this.scope = new Scope(this.box.querySelector("[data-scope]"), analyser);
    this.countDown(COUNT_SECONDS);
  }

  countDown(left) {
    this.state = "counting";
    if (left === 0) {
      this.record();
      return;
    }
    this.count.textContent = String(left);
    this.words.textContent = this.box.dataset.ready.replace("SECONDS", String(left));
    this.timer = setTimeout(() => this.countDown(left - 1), 1000);
  }

  record() {
    this.count.textContent = "";
    const mimeType = TYPES.find((type) => MediaRecorder.isTypeSupported(type));
    const pieces = [];
    this.media = new MediaRecorder(this.stream, { mimeType, audioBitsPerSecond: 128_000 });
    this.media.addEventListener("dataavailable", (event) => pieces.push(event.data));
    this.media.addEventListener("stop", () => this.finish(pieces));
    this.scope.clear();
    this.media.start();
    this.started = performance.now();
    this.spoken = this.started;
    this.state = "recording";
    this.say("recording");
    this.timer = setInterval(() => this.follow(), 200);
  }

  follow() {
    const seconds = (performance.now() - this.started) / 1000;
    this.now.textContent = clock(Math.floor(seconds));
    if (seconds >= this.limit) {
      this.media.stop();
      return;
    }
    if (performance.now() - this.spoken < WORDS_MS) return;
    this.spoken = performance.now();
    const level = this.scope.level();
    this.say(level > LOUD ? "loud" : level < QUIET ? "quiet" : "good");
  }

  finish(pieces) {
    const seconds = (performance.now() - this.started) / 1000;
    const type = (this.media.mimeType || pieces[0]?.type || "audio/webm").split(";")[0];
    this.close("done");
    this.say("done");
    announce(this.box.dataset.done);
    const file = new File(pieces, `${this.box.dataset.name}.${ENDINGS[type] ?? "webm"}`, { type });
    take(this.form, file, { seconds, reading: this.reading, source: "microphone" });
  }

  close(state) {
    clearTimeout(this.timer);
    clearInterval(this.timer);
    this.scope?.stop();
    this.count.textContent = "";
    for (const track of this.stream?.getTracks() ?? []) track.stop();
    this.context?.close();
    this.stream = this.context = null;
    this.state = state;
    if (state === "idle") this.words.textContent = "";
  }

  async listDevices() {
    const found = (await navigator.mediaDevices.enumerateDevices()).filter((one) => one.kind === "audioinput");
    const track = this.stream?.getAudioTracks()[0];
    if (!track || found.length < 2) return;
    const current = track.getSettings().deviceId;
    this.device.replaceChildren(
      ...found.map((one) => new Option(one.label || one.deviceId, one.deviceId, false, one.deviceId === current)),
    );
    this.box.querySelector("[data-device]").hidden = false;
  }
}

enhance("[data-recorder]", (box) => {
  const recorder = new Recorder(box);
  window.addEventListener("pagehide", () => recorder.close("idle"));
});
