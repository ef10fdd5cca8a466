// card.js — one stream among several: its text, its state above the text, its numbers, its own Stop button.
//
// Text reaches the document through text nodes alone, once a drawn frame.
import { Meter } from "./meter.js";
import { Reader } from "./reader.js";
import { end_in_words, ms, per_second } from "./words.js";

const template = document.getElementById("card");
const numbers_every_ms = 250;

export class Card {
  element = template.content.firstElementChild.cloneNode(true);
  #parts = parts_of(this.element);
  #stream;
  #reader;
  #meter;
  #made = document.createTextNode("");
  #fresh = ""; // shown, not yet in the document
  #numbers_at = 0;
  #over = false;

  /**
   * @param {import("./weir.js").Stream} stream
   * @param {{slot: number, given: string, pace: () => number, arrived: (delta: object) => void,
   *   shown: (n: number) => void, ended: (card: Card) => void, removed: (card: Card) => void}} more
   *   slot: number and colour; given: what the text goes on from
   */
  constructor(stream, { slot, given, pace, arrived, shown, ended, removed }) {
    this.#stream = stream;
    this.#meter = new Meter(stream.seq);
    this.slot = slot;
    this.element.dataset.slot = slot;
    this.element.setAttribute("aria-label", `Stream ${slot}`);
    this.#parts.text.setAttribute("aria-label", `Text of stream ${slot}`);
    this.#parts.number.textContent = slot;
    this.#parts.given.textContent = given;
    this.#parts.made.append(this.#made);
    this.#parts.end.onclick = () => (this.running ? this.stop() : removed(this));
    this.#to("waiting", "waiting for the first token");
    stream.on("loaded", () => this.#to("waiting", "waiting for the first token"));
    stream.on("created", ({ queue_position, loading, model }) => {
      if (loading) this.#to("waiting", `${model} is being loaded`);
      else if (queue_position > 0) this.#to("waiting", `waiting: ${queue_position} before it`);
    });
    stream.on("state", ({ state }) => this.#follow(state));
    stream.on("arrived", arrived);
    this.#reader = new Reader(stream, {
      pace,
      show: (text, n) => {
        if (this.#meter.tokens === 0) this.#to("writing", "writing");
        this.#meter.show(n);
        this.#fresh += text;
        shown(n);
      },
      over: (result) => {
        this.#end(result);
        ended(this);
      },
    });
  }

  get running() {
    return !this.#over;
  }

  /** The server's id of it; null before the server has taken it. */
  get response_id() {
    return this.#stream.response_id;
  }

  /** The code of the error that ended the stream. */
  get code() {
    return this.#stream.result?.error?.code;
  }

  get words() {
    return this.#parts.state.textContent;
  }

  get summary() {
    return `Stream ${this.slot}: ${this.words}. Tokens: ${this.#meter.tokens}.`;
  }

  stop() {
    this.#reader.stop();
    this.#stream.cancel();
  }

  render(now) {
    if (this.#fresh !== "") this.#made.appendData(this.#fresh);
    this.#fresh = "";
    if (now - this.#numbers_at < numbers_every_ms && this.running) return;
    this.#numbers_at = now;
    const { tokens, speed, first } = this.#meter;
    this.#parts.tokens.textContent = tokens;
    const moving = this.element.dataset.state !== "waiting"; // a lost connection has no speed
    this.#parts.speed.textContent = moving && speed > 0 ? `· ${per_second(speed)}/s` : "";
    this.#parts.first.textContent = first > 0 ? `· first after ${ms(first)}` : "";
  }

  #follow(state) {
    if (state === "reconnecting") this.#to("waiting", "connection lost: going on as soon as it is back");
    if (state === "running" && this.#meter.tokens > 0) this.#to("writing", "writing");
  }

  #end(result) {
    this.#over = true;
    this.render(performance.now());
    this.#to(result.status, end_in_words(result, this.#stream.request));
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
