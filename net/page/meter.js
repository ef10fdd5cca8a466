// meter.js — what a reader can measure of one stream: tokens, speed, the wait for the first one.
const fewest_tokens = 8; // fewer, or in less time, say nothing about a speed
const shortest_ms = 400;

export class Meter {
  #before; // tokens that were there already, such as before a reload
  #shown = 0;
  #began = performance.now();
  #first_at = 0;
  #first_tokens = 0;
  #last_at = 0;

  constructor(before) {
    this.#before = before;
  }

  /** So many tokens are shown now. */
  show(n) {
    this.#last_at = performance.now();
    this.#shown += n;
    if (this.#first_at !== 0) return;
    this.#first_at = this.#last_at;
    this.#first_tokens = this.#shown;
  }

  get tokens() {
    return this.#before + Math.round(this.#shown);
  }

  /** Until the first token, in ms; 0 while there is none. */
  get first() {
    return this.#first_at && this.#first_at - this.#began;
  }

  /** Tokens a second, the wait for the first one left out; 0 where there are too few to say. */
  get speed() {
    const made = this.#shown - this.#first_tokens;
    const took = this.#last_at - this.#first_at;
    return made < fewest_tokens || took < shortest_ms ? 0 : (made * 1000) / took;
  }
}
