// parts.js — the parts of an answer in its turn: what the model thinks, folded; what it says; its calls of
// tools and their results, as cards.
import { Prose } from "./markdown.js";
import { ms } from "./words.js";

/**
 * @typedef {{part: "text" | "reasoning" | "arguments", text: string, n?: number, step?: number, took_ms?:
 *   number, call?: {index: number, id: string, name: string}, result?: string, failed?: boolean}} Part
 *   n: tokens; step: which request of the turn it answers; took_ms: how long the model thought; result and
 *   failed: of a call that was run
 */

/** What the parts of text say. @param {Part[]} parts */
export function text_of(parts, between = "\n\n") {
  return parts
    .filter(({ part, text }) => part === "text" && text !== "")
    .map(({ text }) => text)
    .join(between);
}

/** A list of parts that grows, in an element of its own. */
export class PartsView {
  #element;
  #views = [];

  constructor(element) {
    this.#element = element;
  }

  /**
   * Shows a list that begins with the parts shown before.
   * @param {Part[]} parts @param {boolean} writing the last of them is not over
   */
  show(parts, writing) {
    parts.forEach((part, i) => {
      this.#views[i] ??= this.#begin(part);
      this.#views[i](part, writing && i === parts.length - 1);
    });
  }

  #begin({ part }) {
    const element = document.createElement(part === "reasoning" ? "details" : "div");
    this.#element.append(element);
    return (kinds[part] ?? prose)(element);
  }
}

const kinds = { reasoning: thought, arguments: call };

function prose(element) {
  element.className = "prose";
  const document_of = new Prose(element);
  return ({ text }) => document_of.show(text);
}

function thought(element) {
  const summary = document.createElement("summary");
  const box = document.createElement("div");
  element.className = "thought";
  box.className = "thoughts";
  box.tabIndex = 0; // so that the keyboard can scroll it
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", "What the model thought");
  element.append(summary, box);
  const draw = plain_text(box);
  return (part, writing) => {
    draw(part.text);
    element.classList.toggle("thinking", writing);
    say(summary, thought_in_words(part, writing));
  };
}

function thought_in_words({ n, took_ms }, writing) {
  const tokens = n > 0 ? `${Math.round(n)} tokens` : "";
  if (writing) return tokens ? `Thinking… ${tokens}` : "Thinking…";
  const time = took_ms > 0 ? ms(took_ms) : "";
  const how_long = [time, tokens].filter(Boolean).join(" · ");
  return how_long ? `Thought for ${how_long}` : "Thought";
}

function call(element) {
  const name = document.createElement("b");
  const given = document.createElement("code");
  const result = document.createElement("p");
  const head = document.createElement("p");
  element.className = "call";
  element.setAttribute("role", "group");
  head.append(name, " ", given);
  element.append(head, result);
  return (part, writing) => {
    say(name, part.call.name);
    say(given, part.text);
    element.setAttribute("aria-label", `Call of ${part.call.name}`);
    element.classList.toggle("failed", part.failed === true);
    say(result, part.result ?? (writing ? "The model writes the call…" : "The call was not run."));
    result.className = part.result === undefined ? "pending" : "result";
  };
}

function say(element, words) {
  if (element.textContent !== words) element.textContent = words; // read aloud once
}

/** A function that draws a growing text into an element. */
export function plain_text(element) {
  const node = document.createTextNode("");
  element.append(node);
  return (text) => node.appendData(text.slice(node.length));
}
