// reader.js — shows what a stream brings, at a pace that may change while it is read.
//
// 1. The window of the request bounds what waits here: the server keeps the rest until this reader has taken
//    what is there.
// 2. A delta of many tokens is shown in as many pieces, so that tokens that arrive together are shown one by
//    one.
// 3. A hidden page is not paced, because nobody watches it.
const look_ms = 100; // how soon a new pace counts
const late_ms = 100; // a delay beyond this is not made up for

/**
 * How many tokens the server sends ahead of a reader. Half of them have to last until the next ones come:
 * for a round trip, a burst, and the 250 ms of the playout.
 */
export const window_tokens = 64;

export class Reader {
  #pace;
  #show;
  #stopped = false;
  #due = 0;

  /**
   * @param {import("./weir.js").Stream} stream
   * @param {{pace: (part: string) => number, show: (text: string, n: number, of: {part: string, call?: object,
   *   t?: number}) => void, over: (result: import("./weir.js").Result) => void}} more pace: tokens a second,
   *   asked anew each time; show: a text of n tokens, the part of the answer that it belongs to, and when the
   *   server made it; over: called once, when all is shown or the reading was stopped
   */
  constructor(stream, { pace, show, over }) {
    this.#pace = pace;
    this.#show = show;
    this.#read(stream).then(over);
  }

  /** Nothing more is shown. */
  stop() {
    this.#stopped = true;
  }

  async #read(stream) {
    try {
      for await (const delta of stream) if (!(await this.#take(delta))) break;
    } catch {
      // The result says what has failed.
    }
    return stream.done;
  }

  /** Shows a delta. Returns whether the reading goes on. */
  async #take({ text, n, t, parts = [{ part: "text", text }] }) {
    const share = n / parts.length;
    for (const { text, ...of } of parts) {
      const pieces = this.#pace(of.part) === Infinity ? [text] : split(text, share);
      for (const piece of pieces) {
        const tokens = share / pieces.length;
        await this.#wait(tokens, of.part);
        if (this.#stopped) return false;
        this.#show(piece, tokens, { ...of, t });
      }
    }
    return true;
  }

  async #wait(tokens, part) {
    const from = Math.max(this.#due, performance.now() - late_ms);
    for (;;) {
      const pace = this.#pace(part);
      this.#due = pace === Infinity ? performance.now() : from + (tokens * 1000) / pace;
      const left = this.#due - performance.now();
      if (left <= 0 || this.#stopped || document.hidden) return;
      await new Promise((resolve) => setTimeout(resolve, Math.min(left, look_ms)));
    }
  }
}

/** At most n parts of about the same length, none of which cuts a character. */
function split(text, n) {
  const characters = [...text];
  const parts = Math.max(1, Math.min(Math.floor(n), characters.length));
  const at = (i) => Math.round((i * characters.length) / parts);
  return Array.from({ length: parts }, (_, i) => characters.slice(at(i), at(i + 1)).join(""));
}
