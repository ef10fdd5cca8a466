// page.js — what index.html does: a conversation or many streams, and beside them what the stream and the
// server do.
import { GapChart } from "./chart.js";
import { ChatView } from "./chat.js";
import { ask_for_key, stay_connected } from "./connection.js";
import { disturbed, offer_demonstrations } from "./demo.js";
import { device_is, expect_work, on_rest, watch_device } from "./device.js";
import { offer_extras } from "./extras.js";
import { all_chats, forget_all, new_chat, title_of } from "./history.js";
import { chosen_model, refresh_models, show_models } from "./models.js";
import { bound_settings, offer_settings, pace } from "./settings.js";
import { StreamsView } from "./streams.js";
import { ms } from "./words.js";

const frame_ms = 30; // drawing more often is seen by nobody, and keeps tokens waiting that arrive meanwhile
const views = {
  chat: {
    title: "Talk to the model",
    text: "The conversation stays in this browser. The server keeps nothing of it.",
    prompt: "Ask something.",
    examples: [
      "Tell me a funny story about a fox named Ada.",
      "What is 128 + 57?",
      "List five birds.",
      'Give me "name" (string) and "age" (number) as JSON: Mara is 31 years old and lives in Beckton.',
    ],
  },
  raw: {
    title: "Let the model go on",
    text: "The model continues exactly what you write, without a chat template.",
    prompt: "Write the beginning of something.",
    examples: ["Once upon a time, there was a little otter who", "The old clock in the hall struck"],
  },
};

const $ = (id) => document.getElementById(id);
const chart = new GapChart($("chart"));
/** @type {import("./weir.js").Client} */ let client;
let frame_asked = false;
let drawn_at = 0;

const page = {
  client: () => client,
  pace: (part) => disturbed(part === "text" ? pace() : Infinity), // thoughts are folded, and calls are short
  say: (words) => ($("spoken").textContent = words),
  wait: (words) => ($("composer-state").textContent = words),
  begun: () => {
    chart.clear();
    expect_work();
  },
  arrived: (slot, delta) => {
    chart.arrived(slot, delta);
    ask_frame();
  },
  shown: (slot) => {
    chart.shown(slot, performance.now());
    ask_frame();
  },
  changed: show_state,
  expired: () => ask_for_key(),
  running: () => chat.running ?? streams.running[0]?.response_id ?? null,
};
const chat = new ChatView(page);
const streams = new StreamsView(page);

const busy = () => chat.busy || streams.running.length > 0;

function ask_frame() {
  if (frame_asked) return;
  frame_asked = true;
  requestAnimationFrame(draw);
}

/** The chart moves as long as something is written, and rests afterwards. */
function draw() {
  const now = performance.now();
  if (now - drawn_at < frame_ms) return requestAnimationFrame(draw);
  drawn_at = now;
  frame_asked = false;
  streams.render(now);
  if ($("gaps").open) draw_gaps(now);
  if (busy()) ask_frame();
}

function draw_gaps(now) {
  chart.draw(busy() ? now : undefined);
  for (const band of ["raw", "shown"]) {
    const stats = chart.stats(band);
    for (const name of ["median", "p99", "longest"]) {
      const words = stats ? ms(stats[name]) : "–";
      if ($(`${band}-${name}`).textContent !== words) $(`${band}-${name}`).textContent = words;
    }
  }
}

// ---- views

function show_view(name) {
  const many = name === "streams";
  document.body.dataset.view = name;
  $("views").querySelector(`[value=${name}]`).checked = true;
  $("chat").hidden = $("history").hidden = many;
  $("streams-view").hidden = !many;
  $("extras").hidden = name !== "chat";
  if (!many && chat.chat.mode !== name) open_chat(new_chat(name));
  show_state();
}

function open_chat(one) {
  chat.open(one);
  greet_reader(one);
  show_view(one.mode);
}

/** Fills in what is shown before the first turn. */
function greet_reader({ mode, turns }) {
  const { title, text, prompt, examples } = views[mode];
  $("welcome").hidden = turns.length > 0;
  $("welcome-title").textContent = title;
  $("welcome-text").textContent = text;
  $("prompt").placeholder = prompt;
  const buttons = examples.map((example) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = example;
    button.onclick = () => send(example);
    return button;
  });
  $("examples").replaceChildren(...buttons);
}

function send(text) {
  const sent = chat.send(text);
  $("prompt").value = sent ? "" : text; // what is not sent can be sent later
  if (sent && matchMedia("(pointer: fine)").matches) $("prompt").focus(); // else a keyboard covers the answer
}

function show_state() {
  $("send").hidden = chat.busy;
  $("stop").hidden = !chat.busy;
  show_chats();
  watch_device(busy());
  ask_frame();
}

function show_chats() {
  const items = all_chats().map((one) => {
    const item = document.createElement("li");
    const open = Object.assign(document.createElement("button"), {
      type: "button",
      textContent: title_of(one),
    });
    const forget = Object.assign(document.createElement("button"), { type: "button", textContent: "×" });
    if (one.id === chat.chat.id) open.setAttribute("aria-current", "true");
    forget.setAttribute("aria-label", `Delete: ${title_of(one)}`);
    open.onclick = () => open_chat(one);
    forget.onclick = () => {
      chat.forget(one.id);
      greet_reader(chat.chat);
      show_state();
    };
    item.append(open, forget);
    return item;
  });
  $("chats").replaceChildren(...items);
}

// ---- events

$("views").onchange = ({ target }) => show_view(target.value);
$("new-chat").onclick = () => {
  open_chat(new_chat(chat.chat.mode));
  $("prompt").focus();
};
$("composer").onsubmit = (event) => {
  event.preventDefault();
  send($("prompt").value);
};
$("prompt").onkeydown = (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  if (!chat.busy && $("composer").reportValidity()) send($("prompt").value);
};
$("streams-prompt").onkeydown = (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) streams.run();
};
$("stop").onclick = () => chat.stop();
$("forget-all").onclick = () => {
  open_chat(new_chat(chat.chat.mode));
  forget_all();
  show_chats();
};
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || $("settings").open) return;
  chat.stop();
  streams.stop();
});
$("gaps").addEventListener("toggle", () => draw_gaps(performance.now()));

/** Each panel as it was before a reload; else open where there is room beside the conversation. */
function unfold_panels() {
  const place = "weir.panels";
  const before = JSON.parse(sessionStorage.getItem(place) ?? "{}");
  const wide = matchMedia("(min-width: 68rem)").matches;
  const panels = [...document.querySelectorAll(".panel")];
  for (const panel of panels) panel.open = before[panel.id] ?? wide;
  addEventListener("pagehide", () => {
    const now = Object.fromEntries(panels.map(({ id, open }) => [id, open]));
    sessionStorage.setItem(place, JSON.stringify(now));
  });
}

/** `session`: the server's greeting; null: there is no connection. */
function online(session) {
  if (session) {
    bound_settings(session.limits);
    show_models(session.models);
    if (session.models.length === 0) fill_in_models();
    else refresh_models(); // for the presets
  }
  device_is(session !== null, fill_in_models);
}

async function fill_in_models() {
  await refresh_models();
  if (chosen_model() !== "") page.wait("");
}

offer_settings();
offer_extras();
offer_demonstrations(page);
unfold_panels();
on_rest((yes) => {
  chat.server_rests(yes);
  streams.server_rests(yes);
});
stay_connected({ use: (now) => (client = now), say: page.say, online });
greet_reader(chat.chat);
if (chat.go_on_after_reload()) greet_reader(chat.chat);
show_view(chat.chat.mode);
