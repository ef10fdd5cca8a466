// markdown.js — a model's text as a document. The text is foreign: whatever it says, nothing of it runs.
//
// 1. Three walls: HTML in the text stays text, the sanitiser lets a short list of elements through, and the
//    page's Content-Security-Policy runs no script that is not the server's.
// 2. Pictures are links: showing one would tell its server who reads.
// 3. Blocks that are finished are rendered once. A block of more than longest_block characters is shown as
//    it is, because the time for a block can grow with the square of its length; so is one that is nested
//    too deeply.
import { Marked } from "./vendor/marked.esm.js";
import "./vendor/purify.min.js"; // sets DOMPurify

const longest_block = 8_000;
const tags = `a blockquote br code del em h1 h2 h3 h4 h5 h6 hr li ol p pre strong table tbody td th thead tr
  ul`.split(/\s+/);
const allowed = {
  ALLOWED_TAGS: tags,
  ALLOWED_ATTR: ["href", "start", "align", "class"],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    html: ({ text }) => escaped(text),
    image: ({ href, text }) => `<a href="${escaped(href)}">${escaped(text || href)}</a>`,
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
  },
});

function escaped(text) {
  const names = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return text.replace(/[&<>"']/g, (character) => names[character]);
}

/** One text that grows, in an element of its own. */
export class Prose {
  #element;
  #tail = document.createElement("div"); // the block that is not finished
  #text = "";
  #settled = 0; // characters in finished blocks

  constructor(element) {
    this.#element = element;
    this.#tail.className = "tail";
    element.append(this.#tail);
  }

  /** Shows a text that begins with the one shown before. */
  show(text) {
    if (text === this.#text) return;
    this.#text = text;
    const end = this.#settled + finished_length(text.slice(this.#settled));
    if (end > this.#settled) this.#tail.before(rendered(text.slice(this.#settled, end)));
    this.#settled = end;
    this.#tail.replaceChildren(rendered(text.slice(end)));
  }
}

/** The text as a fragment of the document. */
function rendered(text) {
  const html = text.length > longest_block ? null : html_of(text);
  if (html === null) return plain(text);
  const fragment = globalThis.DOMPurify.sanitize(html, allowed);
  for (const link of fragment.querySelectorAll("a")) tame(link);
  for (const block of fragment.querySelectorAll("[class]"))
    if (!/^language-[\w+#.-]{1,32}$/.test(block.className)) block.removeAttribute("class");
  for (const block of fragment.querySelectorAll("pre")) frame(block);
  for (const table of fragment.querySelectorAll("table")) scroll(table, "table");
  return fragment;
}

/** null: the blocks are nested deeper than the renderer can follow. */
function html_of(text) {
  try {
    return marked.parse(text);
  } catch {
    return null;
  }
}

function plain(text) {
  const fragment = document.createDocumentFragment();
  const paragraph = document.createElement("p");
  paragraph.className = "plain";
  paragraph.textContent = text;
  fragment.append(paragraph);
  return fragment;
}

/** A link that names no address is text. */
function tame(link) {
  if (!link.hasAttribute("href")) return link.replaceWith(...link.childNodes);
  link.target = "_blank";
  link.rel = "noopener noreferrer";
}

/** A code block has its language and a button that copies it. */
function frame(block) {
  const code = block.querySelector("code") ?? block;
  const language = code.className.replace("language-", "");
  const box = document.createElement("div");
  const bar = document.createElement("p");
  const copy = document.createElement("button");
  box.className = "code";
  bar.append(language || "code", copy);
  copy.type = "button";
  copy.className = "copy-code";
  copy.textContent = "Copy";
  copy.setAttribute("aria-label", "Copy this code");
  block.tabIndex = 0; // so that the keyboard can scroll it
  block.setAttribute("role", "region");
  block.setAttribute("aria-label", language ? `Code in ${language}` : "Code");
  block.replaceWith(box);
  box.append(bar, block);
}

function scroll(element, name) {
  const box = document.createElement("div");
  box.className = "wide";
  box.tabIndex = 0;
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", name);
  element.replaceWith(box);
  box.append(element);
}

/**
 * The number of characters in finished blocks, which no later text can change. They end at a blank line
 * outside a fence, where the next line begins at the margin and continues no list.
 */
export function finished_length(text) {
  let fence = "";
  let blank = false;
  let finished = 0;
  for (let from = 0; from < text.length;) {
    const end = text.indexOf("\n", from);
    const line = text.slice(from, end < 0 ? text.length : end);
    const told = end >= 0 || line.length > 12; // else it may still become a list
    const goes_on = /^(\s|[-*+]\s|\d{1,9}[.)]\s)/.test(line);
    if (!fence && blank && told && line !== "" && !goes_on) finished = from;
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (!fence && mark) fence = mark;
    else if (fence && mark?.startsWith(fence) && line.trim() === mark) fence = "";
    blank = line.trim() === "";
    if (end < 0) break;
    from = end + 1;
  }
  return finished;
}
