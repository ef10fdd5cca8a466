// streams.js — one prompt written many ways at once: up to sixteen streams, each with a seed of its own.
import { Card } from "./card.js";
import { chosen_model } from "./models.js";
import { evenly, sampling } from "./settings.js";

const most_streams = 16;
const $ = (id) => document.getElementById(id);

export class StreamsView {
  #page;
  /** @type {Card[]} */ #cards = [];
  #at_rest = false; // the server has nothing left to do

  /**
   * @param {{client: () => import("./weir.js").Client, pace: () => number, say: (words: string) => void,
   *   arrived: (slot: number, delta: object) => void, shown: (slot: number, n: number) => void,
   *   begun: () => void, changed: () => void, expired: () => void}} page
   */
  constructor(page) {
    this.#page = page;
    $("ask").onsubmit = (event) => {
      event.preventDefault();
      this.run();
    };
    $("stop-all").onclick = () => this.stop();
    addEventListener("pagehide", () => this.stop()); // these streams have no reader after a reload
  }

  get running() {
    return this.#cards.filter((card) => card.running);
  }

  /** Removes what is there and starts anew. */
  run() {
    if (!$("ask").reportValidity()) return;
    if (chosen_model() === "")
      return this.#tell("The model is still loading. Run it again when it is there.");
    this.stop();
    this.#cards.forEach(({ element }) => element.remove());
    this.#cards = [];
    this.#page.begun();
    const request = { ...sampling(), model: chosen_model(), input: $("streams-prompt").value };
    request.seed ??= Math.floor(Math.random() * 1e6);
    const count = Math.min(most_streams, $("count").valueAsNumber);
    for (let slot = 1; slot <= count; slot++)
      this.#start(slot, { ...request, seed: request.seed + slot - 1 });
    this.#changed();
  }

  stop() {
    this.running.forEach((card) => card.stop());
  }

  /** The server has nothing left to do, or has. */
  server_rests(yes) {
    if (this.#at_rest === yes) return;
    this.#at_rest = yes;
    this.#say_states();
  }

  render(now) {
    this.#cards.forEach((card) => card.render(now));
  }

  #start(slot, request) {
    const stream = this.#page.client().create(request, { play: evenly() });
    const card = new Card(stream, {
      slot,
      given: request.input,
      pace: this.#page.pace,
      arrived: (delta) => this.#cards.includes(card) && this.#page.arrived(slot, delta),
      shown: (n) => this.#cards.includes(card) && this.#page.shown(slot, n),
      ended: () => this.#ended(card),
      removed: () => this.#remove(card),
    });
    this.#cards.push(card);
    $("streams").append(card.element);
  }

  #ended(card) {
    if (!this.#cards.includes(card)) return;
    this.#page.say(card.summary);
    if (card.code === "token_expired") this.#page.expired();
    this.#changed();
  }

  #remove(card) {
    card.element.remove();
    this.#cards = this.#cards.filter((other) => other !== card);
    this.#changed();
  }

  #changed() {
    this.#say_states();
    $("stop-all").disabled = this.running.length === 0;
    const sizes = { large: 4, medium: 8, small: most_streams };
    $("streams").dataset.size = Object.keys(sizes).find((size) => this.#cards.length <= sizes[size]);
    this.#page.changed();
  }

  /** Says beside the button how many streams are under way and how many have failed. */
  #say_states() {
    const states = this.#cards.map(({ element }) => element.dataset.state);
    const count = (state) => states.filter((other) => other === state).length;
    const failed = count("failed");
    const doing = this.#at_rest ? "still being shown: the server has written all" : "under way";
    const parts = [
      this.running.length > 0 && `${this.running.length} ${doing}`,
      failed && `${failed} failed`,
    ];
    const first = this.#cards.find(({ element }) => element.dataset.state === "failed");
    this.#tell(parts.filter(Boolean).join(" · ") + (first ? `: ${first.words}` : ""), failed > 0);
  }

  #tell(words, failed = false) {
    $("ask-state").textContent = words;
    $("ask-state").classList.toggle("failed", failed);
  }
}
