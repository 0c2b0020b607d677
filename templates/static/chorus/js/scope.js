// What a microphone hears, drawn while it hears it: one bar for each twentieth of a second.

const BAR_MS = 50;
const BAR = 3;
const GAP = 2;

/** Draws `analyser` into `canvas`. `level()` is the loudest sample of the last second, 0 to 1. */
export class Scope {
  constructor(canvas, analyser) {
    this.canvas = canvas;
    this.analyser = analyser;
    this.samples = new Float32Array(analyser.fftSize);
    this.bars = [];
    this.last = 0;
    this.running = true;
    this.tick = this.tick.bind(this);
    requestAnimationFrame(this.tick);
  }

  /** Forget what was heard so far: the recording begins. */
  clear() {
    this.bars = [];
  }

  /** Draw no more; what was heard stays to be seen. */
  stop() {
    this.running = false;
  }

  level() {
    return Math.max(0, ...this.bars.slice(-1000 / BAR_MS));
  }

  tick(now) {
    if (!this.running) return;
    if (now - this.last >= BAR_MS) {
      this.last = now;
      this.analyser.getFloatTimeDomainData(this.samples);
      let loudest = 0;
      for (const sample of this.samples) loudest = Math.max(loudest, Math.abs(sample));
      this.bars.push(loudest);
      this.draw();
    }
    requestAnimationFrame(this.tick);
  }

  draw() {
    const { canvas } = this;
    const scale = devicePixelRatio || 1;
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    if (canvas.width !== Math.round(width * scale)) canvas.width = Math.round(width * scale);
    if (canvas.height !== Math.round(height * scale)) canvas.height = Math.round(height * scale);
    const brush = canvas.getContext("2d");
    brush.setTransform(scale, 0, 0, scale, 0, 0);
    brush.clearRect(0, 0, width, height);
    brush.fillStyle = getComputedStyle(canvas).color;
    const room = Math.floor(width / (BAR + GAP));
    const shown = this.bars.slice(-room);
    shown.forEach((value, index) => {
      // Loudness is heard by ratio: the quiet half of a voice must be seen as well.
      const tall = Math.max(2, Math.sqrt(Math.min(1, value)) * height * 0.92);
      brush.beginPath();
      brush.roundRect(index * (BAR + GAP), (height - tall) / 2, BAR, tall, 1.5);
      brush.fill();
    });
  }
}
