// models.js — which models there are, and which one is chosen.
import { authorization } from "./credentials.js";
import { offer_presets } from "./settings.js";

const select = document.getElementById("model");

/** @param {string[]} names */
export function show_models(names) {
  const chosen = select.value;
  const options = names.map((name) => new Option(name, name, false, name === chosen));
  select.replaceChildren(...(options.length > 0 ? options : [new Option("…", "")]));
  select.disabled = names.length < 2;
}

const longest_shown = 100;

/** A model's name in the middle of a sentence: its characters turn nothing around that stands beside it. */
export function name_in_text(name) {
  const all = [...name];
  const element = document.createElement("bdi");
  element.textContent = all.length > longest_shown ? all.slice(0, longest_shown).join("") + "…" : name;
  return element;
}

/** Asks the server for its models: its greeting named only those that were loaded by then. */
export async function refresh_models() {
  try {
    const answer = await fetch("v1/models", authorization());
    if (!answer.ok) return;
    const { data, presets = [] } = await answer.json(); // data: also models that are known and not loaded
    offer_presets(presets);
    // A model that sleeps is chosen as one that is loaded: its tokenizer is there, and a request wakes it.
    const there = ["loaded", "sleeping"];
    const stays = (id, state) => id === select.value && state === "loading"; // it is on its way back
    const loaded = data.filter(({ id, status: { value = "loaded" } = {} }) =>
      there.includes(value) || stays(id, value));
    show_models(loaded.map(({ id }) => id));
  } catch {
    // The connection says that the server is gone.
  }
}

/** Empty while none is loaded. */
export function chosen_model() {
  return select.value;
}
