// chart.js — the time between tokens, live: a dot a frame, the last seconds of all streams, median and p99.
//
// 1. One frame a gap: n tokens that arrive together are one dot (a ring), for that is what a reader sees.
// 2. Drawing costs at most one pass over the dots in view; the quantiles are sorted anew four times a second.

const view_ms = 12_000;
const quantiles_every_ms = 250;
const margin = { left: 54, right: 12, top: 12, bottom: 22 };

export class GapChart {
  #canvas;
  #pen;
  #dots = []; // {at, gap, n, slot}, in order of arrival
  #last = new Map(); // slot → when its last frame arrived
  #began = 0;
  #newest = 0;
  #counted_at = 0;
  #stats = null; // {median, p99, longest} of the dots in view, ms
  #top = 0; // the scale's end, eased towards …
  #goal = 50; // … what the dots need; it grows at once and shrinks only when much too large
  #inks = null;

  /** @param {HTMLCanvasElement} canvas sized by the style sheet */
  constructor(canvas) {
    this.#canvas = canvas;
    this.#pen = canvas.getContext("2d");
    matchMedia("(prefers-color-scheme: dark)").onchange = () => ((this.#inks = null), this.draw());
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  get stats() {
    return this.#stats;
  }

  clear() {
    this.#dots = [];
    this.#last.clear();
    this.#began = this.#newest = this.#counted_at = this.#top = 0;
    this.#goal = 50;
    this.#stats = null;
  }

  /** A slot that is used again: its next frame starts a new row of gaps. */
  forget(slot) {
    this.#last.delete(slot);
  }

  add(slot, at, n) {
    if (this.#began === 0) this.#began = at;
    const before = this.#last.get(slot);
    this.#last.set(slot, at);
    this.#newest = at;
    if (before !== undefined) this.#dots.push({ at, gap: at - before, n, slot });
  }

  /** @param {number} [now] the view moves along with it; left out, it rests at the newest frame */
  draw(now) {
    const { width, height } = this.#fit();
    if (width === 0) return;
    const resting = now === undefined;
    const from = Math.max(this.#began, (resting ? this.#newest : now) - view_ms);
    let gone = 0;
    while (gone < this.#dots.length && this.#dots[gone].at < from) gone++;
    if (gone > 0) this.#dots.splice(0, gone);
    if (resting || now - this.#counted_at >= quantiles_every_ms) this.#count(now);
    const near = Math.abs(this.#goal - this.#top) < 0.01 * this.#goal;
    this.#top = resting || near || this.#top === 0 ? this.#goal : this.#top + (this.#goal - this.#top) * 0.2;

    const x = (at) => margin.left + ((at - from) / view_ms) * (width - margin.left - margin.right);
    const y = (gap) => height - margin.bottom - (gap / this.#top) * (height - margin.top - margin.bottom);
    this.#pen.clearRect(0, 0, width, height);
    this.#draw_grid(x, y, from, width, height);
    this.#draw_dots(x, y);
    if (this.#stats) this.#draw_levels(y, width);
  }

  #count(now = 0) {
    this.#counted_at = now;
    const gaps = Float64Array.from(this.#dots, ({ gap }) => gap).sort();
    if (gaps.length === 0) return;
    const quantile = (q) => gaps[Math.ceil(q * gaps.length) - 1];
    this.#stats = { median: quantile(0.5), p99: quantile(0.99), longest: gaps[gaps.length - 1] };
    const wanted = scale_end(this.#stats);
    if (wanted > this.#goal || wanted < 0.6 * this.#goal) this.#goal = wanted;
  }

  #draw_grid(x, y, from, width, height) {
    const pen = this.#pen;
    const { line, muted } = this.#colours();
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    pen.lineWidth = 1;
    const step = round_step(this.#top / 4);
    for (let gap = 0; gap <= this.#top * 1.001; gap += step) {
      const at = Math.round(y(gap)) + 0.5;
      pen.strokeStyle = line;
      stroke(pen, margin.left, at, width - margin.right, at);
      pen.fillStyle = muted;
      pen.fillText(gap === 0 ? "0" : `${round_off(gap)} ms`, margin.left - 8, at);
    }
    pen.textAlign = "center";
    const second = (at) => (at - this.#began) / 1000;
    for (let s = Math.ceil(second(from) / 2) * 2; s <= second(from + view_ms); s += 2)
      pen.fillText(`${s} s`, Math.min(x(this.#began + s * 1000), width - 14), height - 9);
  }

  /** A gap beyond the scale is a triangle at its end. */
  #draw_dots(x, y) {
    const pen = this.#pen;
    const { slots } = this.#colours();
    const alone = this.#last.size === 1;
    const ground = y(0);
    for (const { at, gap, n, slot } of this.#dots) {
      const left = x(at);
      const top = y(Math.min(gap, this.#top));
      pen.fillStyle = pen.strokeStyle = slots[slot - 1];
      if (alone) {
        pen.globalAlpha = 0.28;
        pen.fillRect(left - 1, top, 2, ground - top);
        pen.globalAlpha = 1;
      }
      pen.beginPath();
      if (gap > this.#top) {
        pen.moveTo(left, top - 6);
        pen.lineTo(left + 5, top + 3);
        pen.lineTo(left - 5, top + 3);
        pen.fill();
      } else if (n > 1) {
        pen.arc(left, top, 3, 0, 7);
        pen.stroke();
      } else {
        pen.fillRect(left - 1.5, top - 1.5, 3, 3);
      }
    }
  }

  #draw_levels(y, width) {
    const pen = this.#pen;
    const { ink, warm, surface } = this.#colours();
    const rows = [
      ["median", this.#stats.median, ink, []],
      ["p99", this.#stats.p99, warm, [5, 4]],
    ];
    const near = Math.abs(y(this.#stats.median) - y(this.#stats.p99)) < 26;
    pen.textAlign = "right";
    pen.font = "600 11px system-ui, sans-serif";
    pen.lineJoin = "round";
    for (const [name, gap, colour, dash] of rows) {
      const at = y(Math.min(gap, this.#top));
      pen.strokeStyle = pen.fillStyle = colour;
      pen.lineWidth = 1.25;
      pen.setLineDash(dash);
      stroke(pen, margin.left, at, width - margin.right, at);
      pen.setLineDash([]);
      const label = at + (near && name === "median" ? 10 : -9);
      pen.strokeStyle = surface;
      pen.lineWidth = 4;
      pen.strokeText(name, width - margin.right - 2, label);
      pen.fillText(name, width - margin.right - 2, label);
    }
  }

  #colours() {
    if (this.#inks) return this.#inks;
    const style = getComputedStyle(this.#canvas);
    const ink = (name) => style.getPropertyValue("--" + name).trim();
    this.#inks = {
      line: ink("line"),
      muted: ink("muted"),
      ink: ink("ink"),
      warm: ink("warm"),
      surface: ink("surface"),
      slots: [1, 2, 3, 4, 5, 6, 7, 8].map((slot) => ink("slot-" + slot)),
    };
    return this.#inks;
  }

  #fit() {
    const canvas = this.#canvas;
    const ratio = devicePixelRatio;
    const { clientWidth: width, clientHeight: height } = canvas;
    const fitting = { width: Math.round(width * ratio), height: Math.round(height * ratio) };
    if (canvas.width !== fitting.width || canvas.height !== fitting.height) Object.assign(canvas, fitting);
    this.#pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    return { width, height };
  }
}

/** High enough for p99, and for the median to sit below the middle; a longer gap is marked at the end. */
function scale_end({ median, p99 }) {
  const least = Math.max(1.25 * p99, 2 * median, 2);
  const step = round_step(least / 4);
  return Math.ceil(least / step) * step;
}

/** 1, 2 or 5 times a power of ten. */
function round_step(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= value * 0.999);
}

function round_off(value) {
  return Number(value.toPrecision(3));
}

function stroke(pen, x1, y1, x2, y2) {
  pen.beginPath();
  pen.moveTo(x1, y1);
  pen.lineTo(x2, y2);
  pen.stroke();
}
