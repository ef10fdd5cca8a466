// device.js — what the server does with everybody's streams: who is in its batch, who waits, and whose the pages are.
const $ = (id) => document.getElementById(id);
const while_busy_ms = 500;
const at_rest_ms = 3000;
const most_dots = 120;
let next_look = 0;
let busy = false;

/** Looks at the published snapshot as long as the page is seen; more often while `now_busy` says that it writes. */
export function watch_device(now_busy) {
  busy = now_busy;
  clearTimeout(next_look);
  if (!document.hidden) look();
}

document.addEventListener("visibilitychange", () => watch_device(busy));

async function look() {
  const key = sessionStorage.getItem("key");
  try {
    const answer = await fetch("v1/stats", key ? { headers: { authorization: `Bearer ${key}` } } : {});
    if (answer.ok) show(await answer.json());
  } catch {
    // A server that is gone is said at the top of the page.
  }
  clearTimeout(next_look);
  if (!document.hidden) next_look = setTimeout(look, busy ? while_busy_ms : at_rest_ms);
}

function show({ jobs, pages, tokens_per_s, step_ms }) {
  $("device").hidden = false;
  show_sequences({ decoding: jobs.decoding, prefilling: jobs.prefilling, queued: jobs.queued });
  show_pages(pages);
  const at_work = jobs.decoding + jobs.prefilling > 0;
  $("device-rate").textContent = at_work ? Math.round(tokens_per_s).toLocaleString("en") : "–";
  $("device-step").textContent = at_work ? `${step_ms.p50.toFixed(step_ms.p50 < 10 ? 1 : 0)} ms` : "–";
}

const said = {
  decoding: (n) => `${n} writing`,
  prefilling: (n) => `${n} reading ${n === 1 ? "its prompt" : "their prompts"}`,
  queued: (n) => `${n} waiting`,
};

/** A dot for each sequence, as far as there is room. */
function show_sequences(counts) {
  const dots = [];
  for (const [state, n] of Object.entries(counts))
    for (let i = 0; i < n && dots.length < most_dots; i++) {
      const dot = document.createElement("i");
      dot.dataset.state = state;
      dots.push(dot);
    }
  $("sequences").replaceChildren(...dots);
  const words = Object.entries(counts).flatMap(([state, n]) => (n > 0 ? [said[state](n)] : []));
  $("sequences-words").textContent = words.join(" · ") || "nobody is here";
}

function show_pages({ total, used, cached, free }) {
  for (const [name, n] of Object.entries({ used, cached, free })) $(`pages-${name}`).style.flexGrow = n / total;
  const tell = (n) => n.toLocaleString("en");
  $("pages-words").textContent =
    `${tell(used)} in use · ${tell(cached)} kept for prompts that begin alike · ${tell(free)} free`;
}
