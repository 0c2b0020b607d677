// The outline of a recording behind its slider. Asked for when the player comes into view, one after the other.
import { enhance } from "./dom.js";

const BAR = 2;
const GAP = 1;
let queue = Promise.resolve();

/** Draw `peaks` (0 to 1) over the whole canvas; the first `share` of them as played. */
export function draw(canvas, peaks, share) {
  const scale = devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  if (!width) return;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const brush = canvas.getContext("2d");
  brush.setTransform(scale, 0, 0, scale, 0, 0);
  const style = getComputedStyle(canvas);
  const bars = Math.max(1, Math.floor(width / (BAR + GAP)));
  for (let index = 0; index < bars; index += 1) {
    const from = Math.floor((index * peaks.length) / bars);
    const to = Math.max(from + 1, Math.floor(((index + 1) * peaks.length) / bars));
    const tall = Math.max(2, Math.max(...peaks.slice(from, to)) * height);
    brush.fillStyle = index / bars <= share ? style.color : style.outlineColor;
    brush.fillRect(index * (BAR + GAP), (height - tall) / 2, BAR, tall);
  }
}

async function load(player) {
  const answer = await fetch(player.dataset.peaks).catch(() => null);
  if (!answer?.ok || !player.isConnected) return;
  const { peaks, spans } = await answer.json();
  const slider = player.querySelector("input[type=range]");
  if (!slider || !peaks.length) return;
  const canvas = document.createElement("canvas");
  canvas.className = "wave";
  canvas.setAttribute("aria-hidden", "true");
  const stage = document.createElement("div");
  stage.className = "stage";
  slider.replaceWith(stage);
  stage.append(canvas, slider);
  const redraw = () => draw(canvas, peaks, Number(slider.value) / Number(slider.max || 1));
  slider.addEventListener("input", redraw);
  for (const type of ["timeupdate", "seeked", "ended"]) player.querySelector("audio").addEventListener(type, redraw);
  new ResizeObserver(redraw).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  player.spans = spans;
  player.dispatchEvent(new CustomEvent("chorus:spans", { bubbles: true, detail: spans }));
  redraw();
}

const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    seen.unobserve(entry.target);
    queue = queue.then(() => load(entry.target));
  }
});

enhance("[data-peaks]", (player) => seen.observe(player));
