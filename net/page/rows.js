// rows.js — a row for each model: how it stands, how fast it is, and for an administrator the buttons that
// change that. A row stays the same element while its model changes, so that its buttons keep the focus.
import { may_administer, order } from "./admin.js";
import { name_in_text } from "./models.js";
import { how_long, per_second } from "./words.js";

const most_rows = 40;
const rate_over_ms = 3000;
/** By state of a model: the orders that it takes. */
const orders_in = {
  absent: ["load"],
  failed: ["load"],
  ready: ["sleep", "unload"],
  asleep: ["wake", "unload"],
};
const under_way = { load: "Loading…", sleep: "Going to sleep…", wake: "Waking…", unload: "Unloading…" };

/** Tokens a second of a model, from its counter. */
class Rate {
  #looks = []; // {at, tokens}, at least one of which is older than rate_over_ms, if there is any

  add(tokens, at) {
    if (this.#looks.some((look) => look.tokens > tokens)) this.#looks = []; // the server began anew
    this.#looks.push({ at, tokens });
    while (this.#looks.length > 2 && at - this.#looks[1].at >= rate_over_ms) this.#looks.shift();
  }

  get now() {
    const [first, last] = [this.#looks[0], this.#looks.at(-1)];
    return last && last.at > first.at ? ((last.tokens - first.tokens) * 1000) / (last.at - first.at) : 0;
  }
}

class Row {
  element = document.getElementById("model-row").content.firstElementChild.cloneNode(true);
  #name;
  #rate = new Rate();
  #busy = false;
  #changed;

  constructor(name, changed) {
    this.#name = name;
    this.#changed = changed;
    const shown = name_in_text(name);
    this.#part("who").append(shown);
    for (const control of [...this.#buttons, this.#pin])
      control.setAttribute("aria-label", `${control.textContent}: ${shown.textContent}`);
    this.#share.setAttribute("aria-label", `Share: ${shown.textContent}`);
    this.element.querySelector("progress").setAttribute("aria-label", `Progress: ${shown.textContent}`);
    for (const button of this.#buttons)
      button.onclick = () => this.#give({ action: button.dataset.order }, under_way[button.dataset.order]);
    this.#pin.onclick = () =>
      this.#give({ pinned: this.#pin.getAttribute("aria-pressed") !== "true" }, "Changing…");
    this.#share.onchange = () => {
      if (this.#share.reportValidity()) this.#give({ share: this.#share.valueAsNumber }, "Changing…");
    };
  }

  show(model, at) {
    if (model.tokens !== undefined) this.#rate.add(model.tokens, at);
    this.element.dataset.state = model.state;
    this.#say("state", state_in_words(model));
    this.#say("facts", facts_of(model, this.#rate.now).join(" · "));
    this.#say("reason", model.reason ?? "");
    const bar = this.element.querySelector("progress");
    bar.hidden = model.state !== "loading";
    if (model.progress > 0) bar.value = model.progress;
    else bar.removeAttribute("value");
    this.#part("orders").hidden = !may_administer();
    const taken = orders_in[model.state] ?? [];
    for (const button of this.#buttons) button.hidden = !taken.includes(button.dataset.order);
    this.#pin.setAttribute("aria-pressed", String(model.pinned === true));
    if (document.activeElement !== this.#share) this.#share.value = model.share ?? 1;
    this.#enable();
  }

  async #give(what, words) {
    if (this.#busy) return;
    const had_focus = this.element.contains(document.activeElement);
    this.#busy = true;
    this.#enable();
    this.#answer(words);
    this.#changed(true);
    try {
      await order(this.#name, what);
      this.#answer("");
    } catch ({ message }) {
      this.#answer(message, true);
    }
    this.#busy = false;
    await this.#changed(false);
    this.#enable();
    if (had_focus && document.activeElement === document.body) this.#first_control()?.focus();
  }

  #enable() {
    for (const control of [...this.#buttons, this.#pin, this.#share]) control.disabled = this.#busy;
  }

  #first_control() {
    return [...this.#buttons, this.#pin].find(({ hidden }) => !hidden);
  }

  #answer(words, failed = false) {
    this.#say("answer", words);
    this.#part("answer").classList.toggle("failed", failed);
  }

  get #buttons() {
    return this.element.querySelectorAll("[data-order]");
  }
  get #pin() {
    return this.#part("pin");
  }
  get #share() {
    return this.element.querySelector("input");
  }
  #part(name) {
    return this.element.querySelector("." + name);
  }
  #say(part, words) {
    if (this.#part(part).textContent !== words) this.#part(part).textContent = words;
  }
}

function state_in_words({ state, level, progress = 0 }) {
  const part = progress > 0 ? ` ${Math.floor(100 * progress)} %` : "";
  if (state === "loading") return (level ? "waking" : "loading") + part;
  if (state === "asleep" && level) return `asleep, on the ${level}`;
  return { absent: "not loaded", draining: "ends its jobs" }[state] ?? state;
}

function facts_of(model, rate) {
  const { running = 0, queued = 0, share_asked = 0, share_got = 0, last_used_s: idle_s } = model;
  const percent = (part) => `${Math.round(100 * part)} %`;
  const facts = [];
  if (rate > 0) facts.push(`${per_second(rate)} tokens/s`);
  if (running > 0) facts.push(`${running} running`);
  if (queued > 0) facts.push(`${queued} waiting`);
  if (share_asked > 0 && share_asked < 1)
    facts.push(`asks for ${percent(share_asked)} of its device, got ${percent(share_got)} in 10 s`);
  if (running + queued === 0 && idle_s !== undefined) facts.push(`last used ${how_long(idle_s)} ago`);
  if (model.pinned) facts.push("pinned");
  return facts;
}

/** The rows of all models, in a list of their own. */
export class Rows {
  #list;
  #rows = new Map(); // by the model's name
  #changed;

  /** `changed`: called with true when an order is given, and with false when it is over. */
  constructor(list, changed) {
    this.#list = list;
    this.#changed = changed;
  }

  /** Shows the models, those that are not loaded last. Returns how many have no row, for want of room. */
  show(models, at) {
    const rank = ({ state }) => (state === "absent" ? 1 : 0);
    const sorted = [...models].sort((a, b) => rank(a) - rank(b)).slice(0, most_rows);
    const names = new Set(sorted.map(({ name }) => name));
    for (const [name, row] of this.#rows)
      if (!names.has(name)) {
        row.element.remove();
        this.#rows.delete(name);
      }
    sorted.forEach((model, i) => {
      if (!this.#rows.has(model.name)) this.#rows.set(model.name, new Row(model.name, this.#changed));
      const row = this.#rows.get(model.name);
      row.show(model, at);
      // A row that moves loses the focus: it moves only where its place is another.
      const there = this.#list.children[i];
      if (there !== row.element) this.#list.insertBefore(row.element, there ?? null);
    });
    return models.length - sorted.length;
  }
}
