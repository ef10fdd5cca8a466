// card.js — one stream on the page: its text, its numbers, its state in plain words, and its own Stop button.
//
// 1. Text reaches the document through text nodes alone.
// 2. Deltas are only noted when they arrive; render() shows what is new, once a drawn frame.
import { even } from "./pace.js";

const template = document.getElementById("card");

export class Card {
  element = template.content.firstElementChild.cloneNode(true);
  #stream;
  #made = document.createTextNode("");
  #fresh = "";            // arrived (and due, where paced), not yet in the document
  #asked_at = performance.now();
  #first_at = 0;
  #first_n = 0;
  #last_at = 0;
  #longest = 0;
  #dirty = true;
  #state = "waiting for the first token";

  /**
   * @param {import("./weir.js").Stream} stream
   * @param {{slot: number, about: string, given: string, pace: string, changed: () => void, ended: (card: Card) => void,
   *   removed: (card: Card) => void}} more slot: number and colour; given: what the text goes on from
   */
  constructor(stream, { slot, about, given, pace, changed, ended, removed }) {
    this.#stream = stream;
    this.slot = slot;
    this.element.dataset.slot = slot;
    this.element.setAttribute("aria-label", `Stream ${slot}`);
    this.#part("text").setAttribute("aria-label", `Text of stream ${slot}`);
    this.#part("number").textContent = slot;
    this.#part("about").textContent = about;
    this.#part("given").textContent = given;
    this.#part("made").append(this.#made);
    this.#part("end").onclick = () => (this.running ? this.stop() : removed(this));
    this.#to("waiting", this.#state);

    const show = ({ text }) => ((this.#fresh += text), this.#touch(changed));
    const finish = (result) => {
      this.#to(result.status, in_words(result, stream.request));
      this.#touch(changed);
      ended(this);
    };
    stream.on("created", ({ queue_position }) => {
      if (queue_position > 0) this.#to("waiting", `waiting: ${queue_position} before it`);
      this.#touch(changed);
    });
    stream.on("delta", (delta) => this.#measure(delta));
    if (pace === "even") {
      even(stream, show, finish);
    } else {
      stream.on("delta", show);
      stream.on("done", finish);
    }
  }

  get running() {
    return this.#stream.result === null;
  }

  get summary() {
    return `Stream ${this.slot}, ${this.#stream.seq} tokens: ${this.#state}.`;
  }

  stop() {
    this.#stream.cancel();
  }

  /** Tokens a second, the first token's wait left out. */
  get speed() {
    const seconds = (this.#last_at - this.#first_at) / 1000;
    return seconds > 0 ? (this.#stream.seq - this.#first_n) / seconds : 0;
  }

  render() {
    if (!this.#dirty) return;
    this.#dirty = false;
    this.#made.appendData(this.#fresh);
    this.#fresh = "";
    this.#part("tokens").textContent = this.#stream.seq;
    this.#part("speed").textContent = this.speed > 0 ? this.speed.toFixed(this.speed < 10 ? 1 : 0) : "–";
    this.#part("first").textContent = this.#first_at ? ms(this.#first_at - this.#asked_at) : "–";
    this.#part("longest").textContent = this.#longest ? ms(this.#longest) : "–";
    this.#part("state").textContent = this.#state;
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
    this.#state = words;
    this.element.dataset.state = name;
    const end = this.#part("end");
    end.textContent = this.running ? "Stop" : "Remove";
    end.setAttribute("aria-label", `${end.textContent} stream ${this.slot}`);
  }

  #touch(changed) {
    this.#dirty = true;
    changed();
  }

  #part(name) {
    return this.element.querySelector("." + name);
  }
}

/** @param {number} value */
export function ms(value) {
  return value < 10 ? `${value.toFixed(1)} ms` : value < 10_000 ? `${Math.round(value)} ms` : `${(value / 1000).toFixed(1)} s`;
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
  const when = retry_after_ms ? `Try again in ${Math.ceil(retry_after_ms / 1000)} s.` : "Try again in a moment.";
  if (code === "rate_limited" || code === "overloaded" || code === "too_many_jobs")
    return `The server has too much to do right now. ${when}`;
  if (code === "gap" || code === "repeat") return `${message} The text is not shown further, because it would be wrong.`;
  return message;
}
