// cable.js — the WebSocket of this page, which two buttons can disturb: one cuts the network, one makes what
// arrives come in bursts. weir.js knows nothing of either.
const burst_ms = 240;
const plugged = new Set();
let cut_until = 0;
let bursty = false;

export class Cable extends WebSocket {
  #take = null;
  #held = []; // what has arrived since the last burst; a burst bounds it
  #timer = 0;

  constructor(url, protocols) {
    super(url, protocols);
    plugged.add(this);
    this.addEventListener("close", () => plugged.delete(this));
    if (is_cut()) this.close();
  }

  get onmessage() {
    return this.#take;
  }

  set onmessage(take) {
    this.#take = take;
    super.onmessage = take && ((event) => this.#arrive(event));
  }

  #arrive(event) {
    if (!bursty && this.#held.length === 0) return this.#take(event);
    this.#held.push(event);
    this.#timer ||= setTimeout(() => this.#release(), burst_ms);
  }

  /** A listener may close the socket; what is left then belongs to nobody. */
  #release() {
    this.#timer = 0;
    for (const event of this.#held.splice(0)) this.#take?.(event);
  }
}

/** Drops every socket, and every new one until so many milliseconds have passed. */
export function cut_for(ms) {
  cut_until = performance.now() + ms;
  plugged.forEach((socket) => socket.close());
}

export function is_cut() {
  return performance.now() < cut_until;
}

export function make_bursty(yes) {
  bursty = yes;
}
