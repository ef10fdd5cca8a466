// chart.js — the time between tokens, live, in two bands of one scale: as they arrive, and as they are shown.
//
// 1. A gap is the time between two frames of a slot: n tokens that arrive together are one dot.
// 2. The time axis is as long as what there is to see, from shortest_view_ms to longest_view_ms.
// 3. Drawing costs at most one pass over the dots in view, most_dots of them; the quantiles are sorted anew
//    four times a second.
const shortest_view_ms = 3_000;
const longest_view_ms = 12_000;
const most_dots = 8_000;
const quantiles_every_ms = 250;
const most_slots = 16;
const margin = { left: 50, right: 8, top: 16, bottom: 20, between: 28 };
const bands = ["raw", "shown"];

/** A gap in ms, in so few letters that the margin holds them. */
function label_of(gap) {
  const [value, unit] = gap < 1000 ? [gap, "ms"] : [gap / 1000, "s"];
  return gap === 0 ? "0" : `${Number(value.toPrecision(3))} ${unit}`;
}

/**
 * The gaps between frames as they arrive. A frame that the server held until this page had room counts with
 * the server's own time for each of its tokens: the wait was this page's, and no gap of the stream.
 */
export class Arrivals {
  #last = new Map(); // by slot: the frame before

  /** The gap before a frame, in ms; undefined before the first one. @param {import("./weir.js").Delta} frame */
  gap(slot, frame) {
    const before = this.#last.get(slot);
    this.#last.set(slot, frame);
    if (!before) return undefined;
    return frame.held ? (frame.t - before.t) / 1000 / frame.n : frame.at - before.at;
  }
}

/** The dots of one band. */
class Band {
  dots = []; // {at, gap, slot}, in order
  stats = null; // {median, p99, longest} of the dots in view, ms

  add(slot, at, gap) {
    if (gap !== undefined) this.dots.push({ at, gap, slot });
    if (this.dots.length > most_dots) this.dots.splice(0, most_dots / 8);
  }

  drop_before(from) {
    const first = this.dots.findIndex(({ at }) => at >= from);
    if (first !== 0) this.dots.splice(0, first < 0 ? this.dots.length : first);
  }

  count() {
    const gaps = Float64Array.from(this.dots, ({ gap }) => gap).sort();
    const quantile = (q) => gaps[Math.ceil(q * gaps.length) - 1];
    const any = gaps.length > 0;
    this.stats = any ? { median: quantile(0.5), p99: quantile(0.99), longest: gaps[gaps.length - 1] } : null;
  }
}

export class GapChart {
  #canvas;
  #pen;
  #bands = { raw: new Band(), shown: new Band() };
  #arrivals = new Arrivals();
  #shown_at = new Map(); // by slot
  #began = 0;
  #newest = 0;
  #counted_at = 0;
  #top = 50; // the scale's end, ms
  #inks = null;

  /** @param {HTMLCanvasElement} canvas sized by the style sheet */
  constructor(canvas) {
    this.#canvas = canvas;
    this.#pen = canvas.getContext("2d");
    matchMedia("(prefers-color-scheme: dark)").onchange = () => ((this.#inks = null), this.draw());
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  /** @param {"raw" | "shown"} band */
  stats(band) {
    return this.#bands[band].stats;
  }

  clear() {
    this.#arrivals = new Arrivals();
    this.#shown_at.clear();
    this.#bands = { raw: new Band(), shown: new Band() };
    this.#began = this.#newest = this.#counted_at = 0;
    this.#top = 50;
  }

  /** A frame has arrived. @param {import("./weir.js").Delta} delta with `t` */
  arrived(slot, delta) {
    this.#add("raw", slot, delta.at, this.#arrivals.gap(slot, delta));
  }

  shown(slot, at) {
    const before = this.#shown_at.get(slot);
    this.#shown_at.set(slot, at);
    this.#add("shown", slot, at, before === undefined ? undefined : at - before);
  }

  #add(band, slot, at, gap) {
    if (this.#began === 0) this.#began = at;
    this.#newest = Math.max(this.#newest, at);
    this.#bands[band].add(slot, at, gap);
  }

  /** @param {number} [now] the view moves along with `now`; left out, the view rests at the newest frame */
  draw(now = this.#newest) {
    const { width, height } = this.#fit();
    if (width === 0) return;
    const from = Math.max(this.#began, now - longest_view_ms);
    const long = Math.min(longest_view_ms, Math.max(shortest_view_ms, (now - this.#began) * 1.1));
    for (const band of bands) this.#bands[band].drop_before(from);
    if (now === this.#newest || now - this.#counted_at >= quantiles_every_ms) this.#count(now);
    const tall = (height - margin.top - margin.bottom - margin.between) / 2;
    const x = (at) => margin.left + ((at - from) / long) * (width - margin.left - margin.right);
    this.#pen.clearRect(0, 0, width, height);
    this.#draw_seconds(x, from, long, width, height);
    bands.forEach((band, i) => {
      const ground = margin.top + tall + i * (tall + margin.between);
      const y = (gap) => ground - (Math.min(gap, this.#top) / this.#top) * tall;
      this.#draw_grid(band, y, tall, width);
      this.#draw_dots(this.#bands[band].dots, x, y);
    });
  }

  #count(now) {
    this.#counted_at = now;
    for (const band of bands) this.#bands[band].count();
    const wanted = scale_end(bands.map((band) => this.#bands[band].stats?.p99 ?? 0));
    if (wanted > this.#top || wanted < 0.6 * this.#top) this.#top = wanted;
  }

  #draw_seconds(x, from, long, width, height) {
    const pen = this.#pen;
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    pen.textAlign = "center";
    pen.fillStyle = this.#colours().muted;
    const second = (at) => (at - this.#began) / 1000;
    const step = long > 6_000 ? 2 : 1;
    for (let s = Math.ceil(second(from) / step) * step; s <= second(from + long); s += step)
      pen.fillText(`${s} s`, Math.min(x(this.#began + s * 1000), width - 14), height - 8);
  }

  #draw_grid(band, y, tall, width) {
    const pen = this.#pen;
    const { line, muted, ink } = this.#colours();
    pen.lineWidth = 1;
    pen.textAlign = "right";
    for (const gap of [0, this.#top / 2, this.#top]) {
      const at = Math.round(y(gap)) + 0.5;
      pen.strokeStyle = line;
      stroke(pen, margin.left, at, width - margin.right, at);
      pen.fillStyle = muted;
      pen.fillText(label_of(gap), margin.left - 6, at);
    }
    pen.textAlign = "left";
    pen.fillStyle = ink;
    pen.fillText(band === "raw" ? "as they arrive" : "as they are shown", margin.left, y(this.#top) - 8);
  }

  #draw_dots(dots, x, y) {
    const pen = this.#pen;
    const { slots } = this.#colours();
    for (const { at, gap, slot } of dots) {
      pen.fillStyle = slots[slot - 1];
      pen.fillRect(x(at) - 1.5, y(gap) - 1.5, 3, 3);
    }
  }

  #colours() {
    if (this.#inks) return this.#inks;
    const style = getComputedStyle(this.#canvas);
    const ink = (name) => style.getPropertyValue("--" + name).trim();
    const slots = Array.from({ length: most_slots }, (_, i) => ink(`slot-${i + 1}`));
    this.#inks = { line: ink("line"), muted: ink("muted"), ink: ink("ink"), slots };
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

/** The end of the scale, in ms: above the p99 of both bands. Longer gaps are drawn at the end. */
function scale_end(p99s) {
  const least = Math.max(1.25 * Math.max(...p99s), 10);
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 4, 6, 8, 10].map((factor) => factor * power).find((end) => end >= least * 0.999);
}

function stroke(pen, x1, y1, x2, y2) {
  pen.beginPath();
  pen.moveTo(x1, y1);
  pen.lineTo(x2, y2);
  pen.stroke();
}
