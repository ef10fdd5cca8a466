// card.js — one stream on the page: its text, its numbers, its state in plain words, and its own Stop button.
//
// 1. Text reaches the document through text nodes alone.
// 2. Deltas are only noted when they arrive; render() shows the new text, once a drawn frame, and the numbers
//    as seldom as they can be read.

const template = document.getElementById("card");
const numbers_every_ms = 200;

export class Card {
  element = template.content.firstElementChild.cloneNode(true);
  #parts = parts_of(this.element);
  #stream;
  #made = document.createTextNode("");
  #fresh = ""; // arrived (and due, where paced), not yet in the document
  #asked_at = performance.now();
  #first_at = 0;
  #first_n = 0;
  #last_at = 0;
  #longest = 0;
  #numbers_at = 0;

  /**
   * @param {import("./weir.js").Stream} stream
   * @param {{slot: number, about: string, given: string, changed: () => void, ended: (card: Card) => void,
   *   removed: (card: Card) => void}} more
   *   slot: number and colour; given: what the text goes on from
   */
  constructor(stream, { slot, about, given, changed, ended, removed }) {
    this.#stream = stream;
    this.slot = slot;
    this.element.dataset.slot = slot;
    this.element.setAttribute("aria-label", `Stream ${slot}`);
    this.#parts.text.setAttribute("aria-label", `Text of stream ${slot}`);
    this.#parts.number.textContent = slot;
    this.#parts.about.textContent = about;
    this.#parts.given.textContent = given;
    this.#parts.made.append(this.#made);
    this.#parts.end.onclick = () => (this.running ? this.stop() : removed(this));
    this.#to("waiting", "waiting for the first token");

    stream.on("created", ({ queue_position }) => {
      if (queue_position > 0) this.#to("waiting", `waiting: ${queue_position} before it`);
    });
    stream.on("state", ({ state }) => {
      if (state === "reconnecting") this.#to("waiting", "connection lost: going on as soon as it is back");
      if (state === "running" && this.#first_at > 0) this.#to("writing", "writing");
    });
    stream.on("arrived", (delta) => this.#measure(delta));
    stream.on("delta", ({ text }) => ((this.#fresh += text), changed()));
    stream.on("done", (result) => {
      this.render(performance.now());
      this.#to(result.status, in_words(result, stream.request));
      changed();
      ended(this);
    });
  }

  get running() {
    return this.#stream.result === null;
  }

  get summary() {
    return `Stream ${this.slot}: ${this.#parts.state.textContent}. Tokens: ${this.#stream.seq}.`;
  }

  stop() {
    this.#stream.cancel();
  }

  /** Tokens a second, the first token's wait left out. */
  get speed() {
    const seconds = (this.#last_at - this.#first_at) / 1000;
    return seconds > 0 ? (this.#stream.seq - this.#first_n) / seconds : 0;
  }

  render(now) {
    if (this.#fresh !== "") this.#made.appendData(this.#fresh);
    this.#fresh = "";
    if (now - this.#numbers_at < numbers_every_ms && this.running) return;
    this.#numbers_at = now;
    this.#parts.tokens.textContent = this.#stream.seq;
    this.#parts.speed.textContent = this.speed > 0 ? per_second(this.speed) : "–";
    this.#parts.first.textContent = this.#first_at ? ms(this.#first_at - this.#asked_at) : "–";
    this.#parts.longest.textContent = this.#longest ? ms(this.#longest) : "–";
  }

  #measure({ at, n }) {
    if (this.#first_at === 0) {
      this.#first_at = at;
      this.#first_n = n;
      this.#to("writing", "writing");
    } else {
      this.#longest = Math.max(this.#longest, at - this.#last_at);
    }
    this.#last_at = at;
  }

  #to(name, words) {
    this.#parts.state.textContent = words;
    this.element.dataset.state = name;
    const end = this.#parts.end;
    end.textContent = this.running ? "Stop" : "Remove";
    end.setAttribute("aria-label", `${end.textContent} stream ${this.slot}`);
  }
}

/** The elements inside, by class. */
function parts_of(element) {
  return Object.fromEntries([...element.querySelectorAll("[class]")].map((part) => [part.className, part]));
}

/** @param {number} value */
export function ms(value) {
  if (value >= 10_000) return `${(value / 1000).toFixed(1)} s`;
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
}

/** @param {number} value */
export function per_second(value) {
  return value.toFixed(value < 10 ? 1 : 0);
}

/** Why a stream ended. */
function in_words({ finish_reason, error }, { max_tokens }) {
  if (error) return failure_in_words(error);
  const words = {
    stop: "finished",
    length: `reached ${max_tokens ? `its limit of ${max_tokens}` : "the limit of"} tokens`,
    cancel: "stopped",
    timeout: "out of time",
    repetition: "ended, because it went round in circles",
  };
  return words[finish_reason] ?? finish_reason;
}

function failure_in_words({ code, message, retry_after_ms }) {
  const when = retry_after_ms ? `in ${Math.ceil(retry_after_ms / 1000)} s` : "in a moment";
  if (code === "rate_limited" || code === "overloaded" || code === "too_many_jobs")
    return `The server has too much to do right now. Try again ${when}.`;
  if (code === "gap" || code === "repeat")
    return `${message} The text is not shown further, because it would be wrong.`;
  return message;
}
