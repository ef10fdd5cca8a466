// answer.js — one answer that the model writes into a turn of a conversation: its parts, and above them its
// state in plain words.
import { Meter } from "./meter.js";
import { text_of } from "./parts.js";
import { Reader } from "./reader.js";
import { add_part } from "./weir.js";
import { end_in_words, per_second, speed_in_words } from "./words.js";

const words_every_ms = 250;
const draw_share = 4; // the next drawing waits this many times as long as a slow drawing took

export class Answer {
  #stream;
  #reader;
  #meter;
  #page;
  #turn;
  #before; // the parts that were there already
  #made; // the parts of this stream that are shown
  #said_at = 0;
  #timer = 0;
  #over = false;
  #doing = "";

  /**
   * @param {import("./weir.js").Stream} stream
   * @param {import("./turn.js").TurnView} turn
   * @param {{pace: () => number, before: import("./parts.js").Part[], step: number,
   *   arrived: (delta: object) => void, shown: (n: number) => void, changed: () => void,
   *   ended: (how: object) => void}} page before: what is in the turn already; step: which request of the
   *   turn this stream answers; changed: called after a drawing; ended: called once
   */
  constructor(stream, turn, page) {
    this.#stream = stream;
    this.#before = page.before;
    this.#made = structuredClone(stream.parts);
    this.#meter = new Meter(stream.seq);
    this.#page = page;
    this.#turn = turn;
    stream.on("loaded", () => this.#say("waiting for the first token"));
    stream.on("created", ({ queue_position, loading, model }) => {
      if (loading) this.#say(`${model} is being loaded`);
      else if (queue_position > 0) this.#say(`waiting: ${queue_position} before it`);
    });
    stream.on("state", ({ state: now }) => this.#follow(now));
    stream.on("arrived", page.arrived);
    this.#reader = new Reader(stream, {
      pace: page.pace,
      show: (text, n, of) => this.#show(text, n, of),
      over: (result) => this.#end(result),
    });
    turn.draw(this, true);
    this.#say(stream.seq === 0 ? "waiting for the first token" : "going on after the reload");
  }

  /** The server's id of it; null before the server has taken it. */
  get response_id() {
    return this.#stream.response_id;
  }

  /** All that is shown in the turn. */
  get parts() {
    const { step } = this.#page;
    return [...this.#before, ...this.#made.map((part) => ({ ...part, step }))];
  }

  /** What the model says in it. */
  get text() {
    return text_of(this.parts, this.#turn.plain ? "" : undefined);
  }

  /** What was shown stays; what the server has sent beyond that is dropped. */
  stop() {
    this.#reader.stop();
    this.#stream.cancel();
  }

  /** Whether all is written, and only this page still shows it. */
  server_rests(yes) {
    this.#doing = yes ? "still showing what is written" : "";
  }

  #follow(now) {
    if (now === "reconnecting") this.#say("connection lost: going on as soon as it is back");
    if (now === "running" && this.#meter.tokens > 0) this.#say(this.#what());
  }

  #what() {
    return this.#doing || (this.#made.at(-1)?.part === "reasoning" ? "thinking" : "writing");
  }

  #show(text, n, { t, ...of }) {
    const known = this.#made.length;
    add_part(this.#made, { ...of, text, n });
    if (of.part === "reasoning") this.#time(this.#made.length > known, t);
    this.#meter.show(n);
    this.#page.shown(n);
    const now = performance.now();
    if (now - this.#said_at > words_every_ms && this.#stream.state !== "reconnecting") {
      const speed = this.#meter.speed;
      this.#say(`${this.#what()} · ${this.#meter.tokens} tokens${speed ? ` · ${per_second(speed)}/s` : ""}`);
    }
    this.#timer ||= requestAnimationFrame(() => this.#render());
  }

  /** Counts how long the model thought, in the server's time; of a thought begun before a reload not. */
  #time(begins, t) {
    const thought = this.#made.at(-1);
    if (t === undefined || thought?.part !== "reasoning") return;
    if (begins) thought.from_us = t;
    if (thought.from_us !== undefined) thought.took_ms = (t - thought.from_us) / 1000;
  }

  #render() {
    const began = performance.now();
    this.#turn.draw(this, true);
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
    const { state } = this.#turn;
    if (state.textContent !== words) state.textContent = words;
  }

  #end(result) {
    this.#over = true;
    cancelAnimationFrame(this.#timer);
    this.#turn.draw(this, false);
    const facts = [end_in_words(result, this.#stream.request)];
    if (this.#meter.tokens > 0) facts.push(`${this.#meter.tokens} tokens`);
    const words = [...facts, ...speed_in_words(result)].join(" · ");
    this.#say(words);
    const { status, error } = result;
    this.#page.ended({ words, failed: status === "failed", completed: status === "completed", error });
  }
}
