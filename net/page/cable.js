// cable.js — the WebSocket of this page, which two buttons can disturb: one cuts the network, one makes what
// arrives come in bursts. weir.js knows nothing of either.
const burst_ms = 240;
const plugged = new Set();
let cut_until = 0;
let bursty = false;

export class Cable extends WebSocket {
  #take = null;
  #held = []; // what has arrived since the last burst: at most burst_ms of it
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

  /** A listener may close the socket and remove itself; what is left is then dropped. */
  #release() {
    this.#timer = 0;
    for (const event of this.#held.splice(0)) this.#take?.(event);
  }
}

/** Closes every socket, and for the next `ms` milliseconds every new one. */
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
