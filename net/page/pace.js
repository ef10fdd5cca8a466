// pace.js — shows a stream evenly: a playout buffer between its deltas and the eye.
//
//   even(stream, (delta) => output.append(delta.text), (result) => …);
//
// 1. The first delta is shown at once; none is shown later than 250 ms after it arrived.
// 2. Between the two, deltas follow at the mean rate of the last 64, held back just enough that those of them
//    that come late (all but 5 in 100) are still in time.
// 3. Elapsed time is measured, ticks are not counted: a slow timer makes it coarser, never later and later.
// 4. A hidden page, a cancelled stream and a failed one are not paced.

const longest_ms = 250;
const remembered = 64;

/**
 * @param {import("./weir.js").Stream} stream
 * @param {(delta: import("./weir.js").Delta) => void} show
 * @param {(result: import("./weir.js").Result) => void} [finish] called once, after the last delta is shown
 */
export function even(stream, show, finish = () => {}) {
  const playout = new Playout(show);
  stream.on("delta", (delta) => playout.push(delta));
  stream.on("done", (result) => playout.end(result, finish));
}

class Playout {
  #show;
  #finish = null;
  #timer = 0;
  #queue = []; // arrived, not shown
  #recent = []; // the last that arrived: {at, seq}
  #shown_at = 0; // when the last one shown was due
  #delay = 0; // how long after its arrival that was

  constructor(show) {
    this.#show = show;
  }

  push(delta) {
    this.#recent.push({ at: delta.at, seq: delta.seq });
    if (this.#recent.length > remembered) this.#recent.shift();
    this.#queue.push(delta);
    this.#play();
  }

  end(result, finish) {
    this.#finish = () => finish(result);
    if (result.status === "cancelled" || result.status === "failed") this.#flush();
    this.#play();
  }

  #play() {
    clearTimeout(this.#timer);
    if (globalThis.document?.hidden) this.#flush();
    const now = performance.now();
    for (; this.#queue.length > 0; this.#show(this.#queue.shift())) {
      const due = this.#due();
      if (due > now) return void (this.#timer = setTimeout(() => this.#play(), due - now));
      this.#shown_at = Math.max(due, this.#queue[0].at);
      this.#delay = this.#shown_at - this.#queue[0].at;
    }
    this.#finish?.();
    this.#finish = null;
  }

  /** When the head of the queue is to be shown, such that everything behind it can still be in time. */
  #due() {
    if (this.#shown_at === 0) return this.#queue[0].at;
    const { gap, slack } = this.#rhythm();
    const steer = this.#delay < 0.9 * slack ? 1.15 : this.#delay > 1.1 * slack ? 0.85 : 1;
    let wait = gap * this.#queue[0].n * steer;
    this.#queue.forEach(({ at }, i) => (wait = Math.min(wait, (at + longest_ms - this.#shown_at) / (i + 1))));
    return this.#shown_at + wait;
  }

  /** gap: mean time between tokens; slack: how late all but 5 in 100 deltas are against that line. */
  #rhythm() {
    const first = this.#recent[0];
    const last = this.#recent.at(-1);
    const gap = (last.at - first.at) / Math.max(1, last.seq - first.seq);
    const late = this.#recent
      .map(({ at, seq }) => at - first.at - (seq - first.seq) * gap)
      .sort((a, b) => a - b);
    const slack = late[Math.floor(0.95 * (late.length - 1))] - late[0];
    return { gap, slack: Math.min(slack, 0.8 * longest_ms) };
  }

  #flush() {
    for (const delta of this.#queue.splice(0)) this.#show(delta);
  }
}
