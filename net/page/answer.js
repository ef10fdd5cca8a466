// answer.js — one answer that the model writes into a turn of a conversation: its text, and above the text
// its state in plain words.
import { Prose } from "./markdown.js";
import { Meter } from "./meter.js";
import { Reader } from "./reader.js";
import { end_in_words, per_second, speed_in_words } from "./words.js";

const words_every_ms = 250;
const draw_share = 4; // the next drawing waits this many times as long as a slow drawing took

export class Answer {
  text;
  #stream;
  #reader;
  #meter;
  #page;
  #draw;
  #state; // the element
  #said_at = 0;
  #timer = 0;
  #over = false;
  #doing = "writing";

  /**
   * @param {import("./weir.js").Stream} stream
   * @param {{body: HTMLElement, state: HTMLElement}} turn
   * @param {{pace: () => number, plain: boolean, before: string, arrived: (delta: object) => void,
   *   shown: (n: number) => void, changed: () => void, ended: (how: object) => void}} page plain: without
   *   markdown; before: what the text begins with; changed: called after a drawing; ended: called once
   */
  constructor(stream, { body, state }, page) {
    this.text = page.before + stream.text;
    this.#stream = stream;
    this.#meter = new Meter(stream.seq);
    this.#page = page;
    this.#draw = page.plain ? plain_text(body) : markdown(body);
    this.#state = state;
    stream.on("created", ({ queue_position }) => {
      if (queue_position > 0) this.#say(`waiting: ${queue_position} before it`);
    });
    stream.on("state", ({ state: now }) => this.#follow(now));
    stream.on("arrived", page.arrived);
    this.#reader = new Reader(stream, {
      pace: page.pace,
      show: (text, n) => this.#show(text, n),
      over: (result) => this.#end(result),
    });
    this.#draw(this.text);
    this.#say(stream.text === "" ? "waiting for the first token" : "going on after the reload");
  }

  /** What was shown stays; what the server has sent beyond that is dropped. */
  stop() {
    this.#reader.stop();
    this.#stream.cancel();
  }

  /** Whether all is written, and only this page still shows it. */
  server_rests(yes) {
    this.#doing = yes ? "still showing what is written" : "writing";
  }

  #follow(now) {
    if (now === "reconnecting") this.#say("connection lost: going on as soon as it is back");
    if (now === "running" && this.#meter.tokens > 0) this.#say("writing");
  }

  #show(text, n) {
    this.text += text;
    this.#meter.show(n);
    this.#page.shown(n);
    const now = performance.now();
    if (now - this.#said_at > words_every_ms && this.#stream.state !== "reconnecting") {
      const speed = this.#meter.speed;
      this.#say(`${this.#doing} · ${this.#meter.tokens} tokens${speed ? ` · ${per_second(speed)}/s` : ""}`);
    }
    this.#timer ||= requestAnimationFrame(() => this.#render());
  }

  #render() {
    const began = performance.now();
    this.#draw(this.text);
    this.#page.changed();
    const took = performance.now() - began;
    if (took < 8) return void (this.#timer = 0);
    setTimeout(() => {
      this.#timer = 0;
      if (!this.#over) this.#render();
    }, took * draw_share);
  }

  #say(words) {
    this.#said_at = performance.now();
    if (this.#state.textContent !== words) this.#state.textContent = words;
  }

  #end(result) {
    this.#over = true;
    cancelAnimationFrame(this.#timer);
    this.#draw(this.text);
    const facts = [end_in_words(result, this.#stream.request)];
    if (this.#meter.tokens > 0) facts.push(`${this.#meter.tokens} tokens`);
    const words = [...facts, ...speed_in_words(result)].join(" · ");
    this.#say(words);
    this.#page.ended({ words, failed: result.status === "failed", code: result.error?.code });
  }
}

/** A function that draws a growing text into an element. */
export function markdown(element) {
  const prose = new Prose(element);
  return (text) => prose.show(text);
}

export function plain_text(element) {
  const node = document.createTextNode("");
  element.append(node);
  return (text) => node.appendData(text.slice(node.length));
}
