// chat.js — the conversation that is open: what is sent, what comes back, what can be done with each turn.
//
// 1. A conversation is kept in this browser whenever a turn begins or ends, and once a second meanwhile.
// 2. The stream of the answer under way is remembered by weir.js: after a reload the same answer goes on.
// 3. A turn of the model is one stream, or several: each one that ends in calls of tools is followed by one
//    that has their results.
import { Answer } from "./answer.js";
import { extras, extras_are_right, Judge, mark_schema, refused_request, took_request } from "./extras.js";
import { forget_chat, find_chat, keep_chat, new_chat } from "./history.js";
import { chosen_model } from "./models.js";
import { messages_of } from "./said.js";
import { evenly, sampling, system_messages } from "./settings.js";
import { run_call } from "./tools.js";
import { copy, TurnView } from "./turn.js";
import { remembered } from "./weir.js";

const $ = (id) => document.getElementById(id);
const stream_place = "weir.answer."; // and the conversation's id: where weir.js keeps the stream
const chat_place = "weir.answering"; // where the id of the conversation with an answer under way is kept
const keep_every_ms = 1000;
const near_px = 60; // nearer to the end than this, the view follows the text
const most_steps = 8; // streams of one turn

export class ChatView {
  /** @type {import("./history.js").Chat} */ chat = new_chat("chat");
  #page;
  /** @type {TurnView[]} */ #views = [];
  /** @type {Answer | null} */ #answer = null;
  /** @type {Judge | null} */ #judge = null; // of the answer under way
  #kept_at = 0;
  #thinks = false; // the model is thinking, and the page has said so
  #following = true; // whether the view follows the end of the text

  /**
   * @param {{client: () => import("./weir.js").Client, pace: () => number, say: (words: string) => void,
   *   wait: (words: string) => void, arrived: (slot: number, delta: object) => void,
   *   shown: (slot: number, n: number) => void, begun: () => void, changed: () => void,
   *   expired: () => void}} page wait: shows why nothing is sent yet; begun: a stream begins; changed: a
   *   stream begins or ends; expired: the token has expired
   */
  constructor(page) {
    this.#page = page;
    $("turns").addEventListener("click", ({ target }) => {
      if (target.className === "copy-code")
        copy(target.closest(".code").querySelector("pre").textContent, target);
    });
    const box = $("scroll");
    box.addEventListener("scroll", () => {
      this.#following = box.scrollHeight - box.scrollTop - box.clientHeight < near_px;
    });
    addEventListener("pagehide", () => this.#keep());
  }

  get busy() {
    return this.#answer !== null;
  }

  /** The id of the response that is being written, or null. */
  get running() {
    return this.#answer?.response_id ?? null;
  }

  /** @param {import("./history.js").Chat} chat */
  open(chat) {
    this.#leave();
    this.chat = chat;
    this.#views = [];
    $("turns").replaceChildren();
    for (const turn of chat.turns) this.#append(turn).show_kept();
    mark_schema("");
    this.#offer();
    this.#to_end();
  }

  /** Goes on with the answer that a reload has interrupted. Returns whether there is one. */
  go_on_after_reload() {
    const chat = find_chat(sessionStorage.getItem(chat_place));
    const saved = remembered(stream_place + chat?.id);
    sessionStorage.removeItem(chat_place);
    if (chat?.turns.at(-1)?.role !== "assistant") return false;
    this.open(chat);
    this.#views.at(-1).clear();
    if (saved) this.#follow(this.#page.client().resume(saved, this.#how()));
    else this.#end({ words: "The page was reloaded before the answer began.", failed: true });
    return true;
  }

  send(text) {
    if (!this.#may_write()) return false;
    this.#append({ role: "user", text }).show_kept();
    this.#write();
    return true;
  }

  stop() {
    this.#answer?.stop();
  }

  /** The server has nothing left to do, or has. */
  server_rests(yes) {
    this.#answer?.server_rests(yes);
  }

  forget(id) {
    if (id === this.chat.id) this.open(new_chat(this.chat.mode));
    forget_chat(id);
  }

  /** Stops the answer under way. What is shown of it stays in its conversation. */
  #leave() {
    if (!this.busy) return;
    this.stop();
    this.#take(this.#views.at(-1).turn);
    this.#end({ words: "stopped" });
  }

  // ---- writing

  #may_write() {
    const loads = chosen_model() === "";
    this.#page.wait(loads ? "The model is still loading. Send it again when it is there." : "");
    return !loads && !this.busy && (this.chat.mode === "raw" || extras_are_right());
  }

  /** Has the model answer the conversation. `before`: the beginning of the answer, which it continues. */
  #write(before = "") {
    const turn = { role: "assistant", text: before, step: 0 };
    if (this.chat.mode === "raw") turn.before = before;
    else turn.asks = extras();
    this.#append(turn).clear();
    this.#ask();
  }

  /** Asks for the next stream of the last turn. */
  #ask() {
    const { turn } = this.#views.at(-1);
    const request = { ...sampling(), ...turn.asks, model: chosen_model(), input: this.#input(turn) };
    this.#follow(this.#page.client().create(request, this.#how()));
  }

  /** How weir.js shows and remembers the stream of this conversation. */
  #how() {
    return { remember: stream_place + this.chat.id, play: evenly() };
  }

  #input(writing) {
    const { mode, turns } = this.chat;
    if (mode === "raw") return turns.findLast(({ role }) => role === "user").text + writing.text;
    return [...system_messages(), ...messages_of(turns, writing)];
  }

  /** Shows a stream in the last turn, behind what the streams before it have left there. */
  #follow(stream) {
    const view = this.#views.at(-1);
    const { before = "", parts = [], step = 0, asks = {} } = view.turn;
    this.#judge = asks.json_schema === undefined ? null : new Judge(asks.json_schema);
    view.element.classList.add("writing");
    sessionStorage.setItem(chat_place, this.chat.id);
    this.#page.begun();
    const answer = new Answer(stream, view, {
      pace: this.#page.pace,
      before: before === "" ? parts.filter((part) => part.step < step) : [{ part: "text", text: before }],
      step,
      arrived: (delta) => this.#page.arrived(1, delta),
      shown: (n) => this.#page.shown(1, n),
      changed: () => this.#answer === answer && this.#grown(view.turn),
      ended: (how) => this.#answer === answer && this.#over(how),
    });
    stream.on("created", took_request);
    this.#answer = answer;
    this.#thinks = false;
    this.#show_judged(false);
    this.#offer();
    this.#keep();
    this.#page.changed();
    this.#to_end();
  }

  #grown(turn) {
    this.#take(turn);
    this.#show_judged(false);
    this.#say_thinking(this.#answer.parts.at(-1)?.part === "reasoning");
    if (performance.now() - this.#kept_at > keep_every_ms) this.#keep();
    this.#stay_at_end();
  }

  #say_thinking(thinks) {
    if (thinks && !this.#thinks) this.#page.say("The model is thinking.");
    this.#thinks = thinks;
  }

  /** Keeps in the turn what is shown of its answer. */
  #take(turn) {
    const { parts, text } = this.#answer;
    turn.text = text;
    const is_text = this.chat.mode === "raw" || parts.every(({ part }) => part === "text");
    turn.parts = is_text ? undefined : parts;
  }

  /** A stream is over: the next one follows, or the turn is over, too. */
  #over(how) {
    const { turn } = this.#views.at(-1);
    this.#take(turn);
    if (how.failed && refused_request(how.error ?? {})) {
      delete turn.asks.tools;
      return this.#ask();
    }
    if (!how.completed || !this.#run_calls(turn)) return this.#end(how);
    turn.step++;
    if (turn.step < most_steps) this.#ask();
    else this.#end({ words: `stopped: the model has called tools ${most_steps} times without an answer` });
  }

  /** Runs the calls of the stream that is over. Returns whether there are any. */
  #run_calls(turn) {
    const calls = (turn.parts ?? []).filter(({ part, step }) => part === "arguments" && step === turn.step);
    for (const part of calls) Object.assign(part, run_call(part.call.name, part.text));
    const words = calls.map(({ call, text, result }) => `The model calls ${call.name} ${text}: ${result}`);
    if (calls.length > 0) this.#page.say(words.join(". ").slice(0, 1000));
    return calls.length > 0;
  }

  #end({ words, failed = false, error }) {
    const view = this.#views.at(-1);
    const { turn } = view;
    if (failed) mark_schema("");
    else this.#show_judged(true);
    this.#answer = this.#judge = null;
    sessionStorage.removeItem(chat_place);
    Object.assign(turn, { words, failed });
    delete turn.asks;
    view.element.classList.remove("writing");
    view.settle();
    this.#keep();
    this.#offer();
    this.#page.say(failed ? words : `The model has written: ${turn.text.slice(0, 1000)}`);
    if (error?.code === "token_expired") this.#page.expired();
    this.#page.changed();
    this.#stay_at_end();
  }

  /** Says how the answer under way stands to its schema. `over`: the answer has ended. */
  #show_judged(over) {
    if (!this.#judge || !this.#answer) return;
    const { turn } = this.#views.at(-1);
    const said = this.#answer.parts.filter(({ part, step }) => part === "text" && step === turn.step);
    const judged = this.#judge.judge(said.map(({ text }) => text).join(""), over);
    if (over) turn.judged = judged;
    mark_schema(judged.words, judged.mark);
  }

  // ---- what can be done with a turn

  #offer() {
    this.#views.forEach((view, i) => view.offer(this.busy ? [] : this.#actions(view, i)));
  }

  /** @returns {[string, () => void][]} */
  #actions(view, i) {
    const last = i === this.#views.length - 1;
    const actions = [["Copy", (event) => copy(view.turn.text, event.target)]];
    if (view.turn.role === "user") actions.push(["Edit", () => this.#edit(view, i)]);
    else actions.push(["Retry", () => this.#retry(i)]);
    if (view.turn.role === "assistant" && last && this.chat.mode === "raw" && view.turn.text !== "")
      actions.push(["Go on", () => this.#go_on(i)]);
    return actions;
  }

  #edit(view, i) {
    view.edit((text) => {
      view.show_kept();
      this.#offer();
      if (text === null || !this.#may_write()) return;
      this.#cut(i);
      this.send(text);
    });
  }

  #retry(i) {
    if (!this.#may_write()) return;
    this.#cut(i);
    this.#write();
  }

  #go_on(i) {
    if (!this.#may_write()) return;
    const { text } = this.#views[i].turn;
    this.#cut(i);
    this.#write(text);
  }

  /** Takes away this turn and all that follow it. */
  #cut(i) {
    for (const { element } of this.#views.splice(i)) element.remove();
    this.chat.turns.splice(i);
  }

  #append(turn) {
    if (!this.chat.turns.includes(turn)) this.chat.turns.push(turn);
    const view = new TurnView(turn, this.chat.mode);
    this.#views.push(view);
    $("turns").append(view.element);
    $("welcome").hidden = true;
    return view;
  }

  #keep() {
    if (this.chat.turns.length === 0) return;
    this.#kept_at = performance.now();
    if (!keep_chat(this.chat)) this.#page.say("This conversation is too long to be kept in the browser.");
  }

  #stay_at_end() {
    if (this.#following) this.#to_end();
  }

  #to_end() {
    $("scroll").scrollTop = $("scroll").scrollHeight;
  }
}
