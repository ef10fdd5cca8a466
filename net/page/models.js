// models.js — which models there are, and which one is chosen.
import { authorization } from "./credentials.js";

const select = document.getElementById("model");

/** @param {string[]} names */
export function show_models(names) {
  const chosen = select.value;
  const options = names.map((name) => new Option(name, name, false, name === chosen));
  select.replaceChildren(...(options.length > 0 ? options : [new Option("…", "")]));
  select.disabled = names.length < 2;
}

/** Asks the server for its models: its greeting named only those that were loaded by then. */
export async function refresh_models() {
  try {
    const answer = await fetch("v1/models", authorization());
    if (answer.ok) show_models((await answer.json()).data.map(({ id }) => id));
  } catch {
    // The connection says that the server is gone.
  }
}

/** Empty while none is loaded. */
export function chosen_model() {
  return select.value;
}
