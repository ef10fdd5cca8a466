// strip.js — the memory of each device as a strip, drawn to scale: what its models take, what is kept for
// others, and what is free. The parts of a strip add up to its device.
import { bytes_in_words } from "./words.js";

/** By kind: what it is, and its bytes of a device as /v1/stats has it. */
const kinds = {
  weights: ["weights", (d) => d.weights],
  used: ["pages in use", (d) => d.pages.used],
  cached: ["pages kept for prompts", (d) => d.pages.cached],
  spare: ["pages that are free", (d) => d.pages.free],
  work: ["workspaces and runtime", (d) => d.workspaces + d.runtime + d.staging],
  outside: ["reserve and outside", (d) => d.reserve + d.outside + d.context],
  free: ["promised to nobody", (d) => d.free],
};

const element = (name, more = {}) => Object.assign(document.createElement(name), more);

/** One device. Its elements stay while its numbers change, so that a pointer may rest on them. */
class Strip {
  element = element("details", { className: "strip-of" });
  #name = element("b");
  #total = element("span");
  #bar = element("span", { className: "strip" });
  #parts = {};

  constructor() {
    const summary = element("summary");
    const numbers = element("dl");
    this.#bar.setAttribute("role", "img");
    summary.append(this.#name, " ", this.#total, this.#bar);
    this.element.append(summary, numbers);
    for (const [kind, [what]] of Object.entries(kinds)) {
      const part = element("i", { className: kind });
      const mark = element("i", { className: kind });
      const number = element("dd");
      const row = element("div");
      mark.setAttribute("aria-hidden", "true");
      const term = element("dt");
      term.append(mark, what);
      row.append(term, number);
      numbers.append(row);
      this.#bar.append(part);
      this.#parts[kind] = { part, number, row };
    }
  }

  show(device) {
    const all = Object.entries(kinds).map(([kind, [what, of]]) => [kind, what, of(device)]);
    const sum = all.reduce((before, [, , bytes]) => before + bytes, 0);
    const whole = device.total > 0 ? bytes_in_words(device.total) : "its size is not known";
    say(this.#name, device.device);
    say(this.#total, whole);
    for (const [kind, what, bytes] of all) {
      const { part, number, row } = this.#parts[kind];
      const share = sum > 0 ? bytes / sum : 0;
      part.style.flexGrow = share;
      part.dataset.bytes = bytes;
      part.title = `${what}: ${bytes_in_words(bytes)}, ${Math.round(100 * share)} %`;
      part.hidden = row.hidden = bytes === 0;
      say(number, bytes_in_words(bytes));
    }
    const there = all.filter(([, , bytes]) => bytes > 0);
    const words = there.map(([, what, bytes]) => `${what} ${bytes_in_words(bytes)}`).join(", ");
    const label = `${device.device}, ${whole}: ${words || "nothing is taken"}`;
    if (this.#bar.ariaLabel !== label) this.#bar.ariaLabel = label;
  }
}

const most_open = 2; // of more devices the numbers are folded away

/** The strips of all devices, in an element of their own. */
export class Strips {
  #element;
  #strips = new Map(); // by the device's name

  constructor(element) {
    this.#element = element;
  }

  show(devices) {
    for (const name of this.#strips.keys())
      if (!devices.some(({ device }) => device === name)) {
        this.#strips.get(name).element.remove();
        this.#strips.delete(name);
      }
    for (const device of devices) {
      if (!this.#strips.has(device.device)) {
        const strip = new Strip();
        strip.element.open = devices.length <= most_open;
        this.#strips.set(device.device, strip);
        this.#element.append(strip.element);
      }
      this.#strips.get(device.device).show(device);
    }
  }
}

function say(element, words) {
  if (element.textContent !== words) element.textContent = words;
}
