// turn.js — one turn of a conversation on the page: who speaks, what is said, and what can be done with it.
import { PartsView, plain_text } from "./parts.js";

const template = document.getElementById("turn");

export class TurnView {
  element = template.content.firstElementChild.cloneNode(true);
  body = this.element.querySelector(".body");
  state = this.element.querySelector(".state");
  #mark = this.element.querySelector(".mark");
  #draw = null; // draws what the turn says, which grows
  #actions = this.element.querySelector(".turn-actions");

  /** @param {import("./history.js").Turn} turn @param {"chat" | "raw"} mode */
  constructor(turn, mode) {
    this.turn = turn;
    this.element.dataset.role = turn.role;
    const names =
      mode === "raw" ? { user: "Given", assistant: "Written" } : { user: "You", assistant: "Model" };
    this.element.querySelector(".who").textContent = names[turn.role];
    this.plain = mode === "raw" || turn.role === "user";
  }

  /** Shows the turn as it is kept: nothing is being written into it. */
  show_kept() {
    this.clear();
    return this.settle();
  }

  clear() {
    this.body.replaceChildren();
    this.#draw = null;
  }

  /** Shows what the turn says, which begins with what was shown since clear(). `writing`: it goes on. */
  draw({ text, parts = [{ part: "text", text }] }, writing) {
    this.#draw ??= this.plain ? plain_text(this.body) : new PartsView(this.body);
    if (this.plain) this.#draw(text);
    else this.#draw.show(parts, writing);
  }

  /** Nothing more is written: shows what the turn says, and how it ended. */
  settle() {
    const { words = "", failed = false, judged } = this.turn;
    this.draw(this.turn, false);
    this.state.textContent = words;
    this.element.classList.toggle("failed", failed);
    this.#mark.hidden = !judged;
    this.#mark.dataset.mark = judged?.mark ?? "";
    this.#mark.textContent = judged ? `schema: ${judged.words}` : "";
    return this;
  }

  /** @param {[string, () => void][]} actions */
  offer(actions) {
    const buttons = actions.map(([name, act]) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name;
      button.onclick = act;
      return button;
    });
    this.#actions.replaceChildren(...buttons);
  }

  /** Puts a text box in place of the text. @param {(text: string | null) => void} done null: unchanged */
  edit(done) {
    const form = document.createElement("form");
    const box = document.createElement("textarea");
    box.value = this.turn.text;
    box.rows = Math.min(10, box.value.split("\n").length + 1);
    box.maxLength = 100_000;
    box.required = true;
    box.setAttribute("aria-label", "Edit what you said");
    const send = Object.assign(document.createElement("button"), {
      textContent: "Send again",
      className: "primary",
    });
    const leave = Object.assign(document.createElement("button"), {
      type: "button",
      textContent: "Leave as it is",
    });
    leave.onclick = () => done(null);
    form.className = "edit";
    form.append(box, leave, send);
    form.onsubmit = (event) => {
      event.preventDefault();
      done(box.value);
    };
    this.body.replaceChildren(form);
    this.offer([]);
    box.focus();
  }
}

/** Copies a text, and says so on the button for a moment. */
export async function copy(text, button) {
  const before = button.textContent;
  button.textContent = (await copied(text)) ? "Copied" : "Not copied";
  setTimeout(() => (button.textContent = before), 1500);
}

/** The clipboard is missing on a page that came over plain HTTP from another machine. */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
