// meter.js — what a reader can measure of one stream: tokens, speed, the wait for the first one.
const fewest_tokens = 8; // with fewer tokens, or in less time, no speed is told
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

  /** `n` more tokens are shown; `n` may be a fraction. */
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

  /** The wait for the first token, in ms; 0 while there is none. */
  get first() {
    return this.#first_at && this.#first_at - this.#began;
  }

  /** Tokens a second, without the wait for the first one; 0: there are too few to tell. */
  get speed() {
    const made = this.#shown - this.#first_tokens;
    const took = this.#last_at - this.#first_at;
    return made < fewest_tokens || took < shortest_ms ? 0 : (made * 1000) / took;
  }
}
