// device.js — what the server does for all its clients: sequences in the batch, jobs that wait, the use of
// the pages, and the model that it is still loading. Nothing is shown that may no longer be true.
import { authorization } from "./credentials.js";
import { workers_may_die } from "./demo.js";
import { enter, inside_changes, offer_orders, show_inside } from "./inside.js";
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
  if (online) enter();
  else hide();
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
$("device").addEventListener("toggle", () => watch_device(busy));
offer_orders(() => (online ? look() : undefined));

async function look() {
  try {
    const answer = await fetch("v1/stats", authorization());
    if (answer.ok && online) await show(await answer.json());
  } catch {
    hide(); // the top of the page says that the server is gone
  }
  clearTimeout(next_look);
  const often = busy || loading || inside_changes();
  if (!document.hidden && online) next_look = setTimeout(look, often ? while_busy_ms : at_rest_ms);
}

function hide() {
  expect_work();
  $("device-now").hidden = true;
  $("device-gone").hidden = false;
  $("loading").hidden = true;
}

async function show({ jobs, pages, tokens_per_s, step_ms, loading: load, fleet, models, devices }) {
  $("device-now").hidden = false;
  $("device-gone").hidden = true;
  $("one-server").hidden = fleet !== undefined;
  $("fleet").hidden = fleet === undefined;
  workers_may_die(fleet?.demo === true);
  show_loading(load);
  const at_work = fleet ? fleet.jobs > 0 : jobs.decoding + jobs.prefilling > 0;
  idle_looks = at_work || jobs.queued > 0 ? 0 : idle_looks + 1;
  const rested = idle_looks >= 2;
  rests(rested);
  if (fleet) {
    show_fleet(fleet);
  } else {
    show_sequences({ decoding: jobs.decoding, prefilling: jobs.prefilling, queued: jobs.queued }, rested);
    show_pages(pages);
  }
  const rate = fleet ? sum(fleet.workers.map((w) => sum(w.models.map((m) => m.tokens_per_s)))) : tokens_per_s;
  $("device-rate").textContent = at_work ? Math.round(rate).toLocaleString("en") : "–";
  if (fleet) return void ($("device-step").textContent = "–");
  $("device-step").textContent = at_work ? `${step_ms.p50.toFixed(step_ms.p50 < 10 ? 1 : 0)} ms` : "–";
  await show_inside({ models, devices });
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

const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

/** A row for each worker of a gateway's fleet: what it runs, and how full its batches are. */
function show_fleet({ workers, moved }) {
  const rows = workers.map((w) => {
    const row = document.createElement("li");
    row.dataset.state = w.state;
    const [jobs, batch] = [sum(w.models.map((m) => m.jobs)), sum(w.models.map((m) => m.batch))];
    const state = w.state === "suspected" ? `silent for ${(w.silent_ms / 1000).toFixed(1)} s` : w.state;
    const words = document.createElement("span");
    words.textContent = `${w.worker.slice(0, 6)} · ${state} · ${jobs} of ${batch} places · `;
    words.append(...w.models.flatMap((m, i) => [i > 0 ? ", " : "", name_in_text(m.name)]));
    const bar = document.createElement("div");
    bar.className = "pages";
    bar.ariaHidden = "true";
    for (const [kind, n] of [["used", jobs], ["", Math.max(0, batch - jobs)]]) {
      const part = document.createElement("i");
      part.className = kind;
      part.style.flexGrow = batch > 0 ? n / Math.max(batch, jobs) : 0;
      bar.append(part);
    }
    row.append(words, bar);
    return row;
  });
  $("workers").replaceChildren(...rows);
  const times = `${moved} ${moved === 1 ? "answer has" : "answers have"} gone on at another worker`;
  $("fleet-words").textContent = workers.length > 0 ? times : "No worker is there: requests are refused.";
}

function show_pages({ total, used, cached, free }) {
  const part = (n) => (total > 0 ? n / total : 0);
  for (const [name, n] of Object.entries({ used, cached, free })) $(`pages-${name}`).style.flexGrow = part(n);
  const tell = (n) => n.toLocaleString("en");
  $("pages-words").textContent =
    `${tell(used)} in use · ${tell(cached)} kept for prompts that begin alike · ${tell(free)} free`;
}
