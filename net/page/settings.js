// settings.js — the sampling fields and the pace, kept in this browser.
import { window_tokens } from "./reader.js";

const place = "weir.settings";
const dialog = document.getElementById("settings");
const form = document.getElementById("settings-form");

/** Fills the form with what was set before, and keeps what is set from now on. */
export function offer_settings() {
  const kept = JSON.parse(localStorage.getItem(place) ?? "{}");
  for (const field of form.elements) if (field.name in kept) field.value = kept[field.name];
  document.getElementById("open-settings").onclick = () => dialog.showModal();
  document.getElementById("defaults").onclick = () => {
    form.reset();
    keep();
  };
  form.addEventListener("change", keep);
}

function keep() {
  const named = [...form.elements].filter(({ name }) => name !== "");
  localStorage.setItem(place, JSON.stringify(Object.fromEntries(named.map((it) => [it.name, it.value]))));
}

/** The server says how far a setting may go. */
export function bound_settings({ max_tokens } = {}) {
  if (max_tokens) form.elements.max_tokens.max = max_tokens;
}

/** The presets that the server has: names of fields that are left empty here. */
export function offer_presets(names) {
  const select = form.elements.preset;
  const kept = JSON.parse(localStorage.getItem(place) ?? "{}").preset;
  select.replaceChildren(new Option("none", ""), ...names.map((name) => new Option(name, name)));
  select.value = names.includes(kept) ? kept : "";
  document.getElementById("preset-label").hidden = names.length === 0;
}

/** Fields of a request. What is left empty is not sent, so that the model's own default counts. */
export function sampling() {
  const request = { window: window_tokens, timing: true }; // timing: for the chart
  for (const field of form.querySelectorAll("input[type=number]"))
    if (field.value !== "") request[field.name] = field.valueAsNumber;
  for (const name of ["stop", "banned_strings", "dry_sequence_breakers", "bad_words"]) {
    const lines = form.elements[name].value.match(/.+/g);
    if (lines) request[name] = lines.map((line) => line.replaceAll("\\n", "\n"));
  }
  for (const name of ["disallow_tokens", "allowed_token_ids"]) {
    const ids = form.elements[name].value.match(/\d+/g);
    if (ids) request[name] = ids.map(Number);
  }
  for (const name of ["temperature_last", "token_healing"])
    if (form.elements[name].value !== "") request[name] = true;
  for (const name of ["context_overflow", "preset"])
    if (form.elements[name].value !== "") request[name] = form.elements[name].value;
  return request;
}

/** Tokens a second that are shown at most. */
export function pace() {
  return Number(form.elements.pace.value) || Infinity;
}

/** Whether weir.js evens out what arrives. */
export function evenly() {
  return form.elements.pace.value !== "live";
}

/** Messages that come before a chat. */
export function system_messages() {
  const content = form.elements.system.value.trim();
  return content === "" ? [] : [{ role: "system", content }];
}
