// device.js — what the server does for all its clients: sequences in the batch, jobs that wait, the use of
// the pages, and the model that it is still loading. Nothing is shown that may no longer be true.
import { authorization } from "./credentials.js";
import { name_in_text } from "./models.js";

const $ = (id) => document.getElementById(id);
const while_busy_ms = 500;
const at_rest_ms = 3000;
const most_dots = 120;
let next_look = 0;
let busy = false;
let online = false;
let loading = false;
let loaded = () => {};
let idle_looks = 0; // in a row, since a stream of this page began
let rests = () => {};

/** Fetches the statistics while the page is visible, more often with `now_busy`: this page has a stream. */
export function watch_device(now_busy) {
  busy = now_busy;
  clearTimeout(next_look);
  if (!document.hidden && online) look();
}

/** yes: whether there is a connection; when_loaded: called when the server has loaded its models. */
export function device_is(yes, when_loaded = loaded) {
  online = yes;
  loaded = when_loaded;
  if (!online) hide();
  watch_device(busy);
}

/** A stream of this page begins: what the server did before says nothing of it. */
export function expect_work() {
  idle_looks = 0;
  rests(false);
}

/**
 * Calls `tell` with whether the server has nothing left to do for anybody. One look may come before the
 * server has taken a new job; two do not.
 */
export function on_rest(tell) {
  rests = tell;
}

document.addEventListener("visibilitychange", () => watch_device(busy));

async function look() {
  try {
    const answer = await fetch("v1/stats", authorization());
    if (answer.ok && online) show(await answer.json());
  } catch {
    hide(); // the top of the page says that the server is gone
  }
  clearTimeout(next_look);
  const often = busy || loading;
  if (!document.hidden && online) next_look = setTimeout(look, often ? while_busy_ms : at_rest_ms);
}

function hide() {
  expect_work();
  $("device-now").hidden = true;
  $("device-gone").hidden = false;
  $("loading").hidden = true;
}

function show({ jobs, pages, tokens_per_s, step_ms, loading: load }) {
  $("device-now").hidden = false;
  $("device-gone").hidden = true;
  show_loading(load);
  const at_work = jobs.decoding + jobs.prefilling > 0;
  idle_looks = at_work || jobs.queued > 0 ? 0 : idle_looks + 1;
  const rested = idle_looks >= 2;
  show_sequences({ decoding: jobs.decoding, prefilling: jobs.prefilling, queued: jobs.queued }, rested);
  show_pages(pages);
  rests(rested);
  $("device-rate").textContent = at_work ? Math.round(tokens_per_s).toLocaleString("en") : "–";
  $("device-step").textContent = at_work ? `${step_ms.p50.toFixed(step_ms.p50 < 10 ? 1 : 0)} ms` : "–";
}

/** @param {{model: string, done: number, total: number} | undefined} load */
function show_loading(load) {
  if (loading && !load) loaded();
  loading = load !== undefined;
  $("loading").hidden = !loading;
  if (!loading) return;
  const { model, done, total } = load;
  if (total > 0) Object.assign($("loading-bar"), { max: total, value: done });
  else $("loading-bar").removeAttribute("value");
  const part = total > 0 ? `: ${Math.floor((100 * done) / total)} %` : "";
  const rest = ` is loading${part}. The page goes on by itself.`;
  $("loading-words").replaceChildren("The model ", name_in_text(model), rest);
}

const said = {
  decoding: (n) => `${n} writing`,
  prefilling: (n) => `${n} reading ${n === 1 ? "its prompt" : "their prompts"}`,
  queued: (n) => `${n} waiting`,
};

/** A dot for each sequence, as far as there is room. */
function show_sequences(counts, rested) {
  const dots = [];
  for (const [state, n] of Object.entries(counts))
    for (let i = 0; i < n && dots.length < most_dots; i++) {
      const dot = document.createElement("i");
      dot.dataset.state = state;
      dots.push(dot);
    }
  $("sequences").replaceChildren(...dots);
  const words = Object.entries(counts).flatMap(([state, n]) => (n > 0 ? [said[state](n)] : []));
  const idle = busy && rested ? "at rest: all is written, and this page is still showing it" : "at rest";
  $("sequences-words").textContent = words.join(" · ") || idle;
}

function show_pages({ total, used, cached, free }) {
  const part = (n) => (total > 0 ? n / total : 0);
  for (const [name, n] of Object.entries({ used, cached, free })) $(`pages-${name}`).style.flexGrow = part(n);
  const tell = (n) => n.toLocaleString("en");
  $("pages-words").textContent =
    `${tell(used)} in use · ${tell(cached)} kept for prompts that begin alike · ${tell(free)} free`;
}
