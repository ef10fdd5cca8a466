// page.js — what index.html does: a form that becomes requests, up to eight cards, one chart.
import { Card, ms, per_second } from "./card.js";
import { GapChart } from "./chart.js";
import { stay_connected } from "./connection.js";
import { watch_device } from "./device.js";

const most_streams = 8;
const frame_ms = 30; // drawing more often is seen by nobody, and keeps tokens waiting that arrive meanwhile
const examples = [
  { name: "A story", mode: "chat", text: "Tell me a funny story about a fox named Ada." },
  { name: "The rest of it", mode: "raw", text: "Once upon a time, there was a little otter who" },
  { name: "A sum", mode: "chat", text: "What is 128 + 57?" },
  { name: "A list", mode: "chat", text: "List five birds." },
  {
    name: "JSON",
    mode: "chat",
    text: 'Give me "name" (string) and "age" (number) as JSON: Mara is 31 years old and lives in Beckton.',
  },
];

const $ = (id) => document.getElementById(id);
const form = $("ask");
const chart = new GapChart($("chart"));
/** @type {import("./weir.js").Client} */ let client;
/** @type {Card[]} */ let cards = [];
let frame_asked = false;
let drawn_at = 0;

const running = () => cards.filter((card) => card.running);
const say = (words) => ($("spoken").textContent = words);

/** Removes what is there and starts `count` streams of one prompt, each with a seed of its own. */
function run() {
  if (!form.reportValidity()) return;
  stop_all();
  cards.forEach((card) => card.element.remove());
  cards = [];
  chart.clear();
  const request = read_request();
  const count = $("count").valueAsNumber;
  for (let i = 0; i < count; i++) start({ ...request, seed: request.seed + i });
  say(count === 1 ? "One stream started." : `${count} streams started.`);
  if (matchMedia("(max-width: 62rem)").matches) $("gaps").scrollIntoView({ block: "start" });
}

/** Starts one stream beside those that are there. */
function add() {
  if (form.reportValidity()) start(read_request());
}

function start(request) {
  const slot = free_slot();
  if (slot === undefined) return say(`There are ${most_streams} streams already. Remove one first.`);
  const chat = typeof request.input !== "string";
  const prompt = $("prompt").value;
  chart.forget(slot);
  const stream = client.create(request, { play: $("pace").value === "even" });
  const card = new Card(stream, {
    slot,
    about: `seed ${request.seed}`,
    given: chat ? prompt + "\n\n" : prompt,
    changed: ask_frame,
    ended,
    removed: remove,
  });
  stream.on("arrived", ({ at, n }) => {
    if (cards.includes(card)) chart.add(slot, at, n); // a removed one's last tokens may still arrive
    ask_frame();
  });
  cards.push(card);
  $("streams").append(card.element);
  $("intro").hidden = true;
  $("gaps").hidden = false;
  show_controls();
  ask_frame();
}

function ended(card) {
  if (cards.includes(card)) say(card.summary);
  show_controls();
}

function remove(card) {
  card.element.remove();
  cards = cards.filter((other) => other !== card);
  show_controls();
}

function stop_all() {
  running().forEach((card) => card.stop());
}

function free_slot() {
  const slots = Array.from({ length: most_streams }, (_, i) => i + 1);
  return slots.find((slot) => !cards.some((card) => card.slot === slot));
}

/** What is left empty is not sent: the server then takes the model's own default. */
function read_request() {
  const prompt = $("prompt").value;
  const chat = new FormData(form).get("mode") === "chat";
  const request = { input: chat ? [{ role: "user", content: prompt }] : prompt };
  if ($("model").value) request.model = $("model").value;
  for (const field of $("settings").querySelectorAll("input[type=number]"))
    if (field.value !== "") request[field.name] = field.valueAsNumber;
  const stops = $("stops").value.match(/.+/g);
  if (stops) request.stop = stops.map((line) => line.replaceAll("\\n", "\n"));
  request.seed ??= Math.floor(Math.random() * 1e6);
  return request;
}

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
  const busy = running();
  cards.forEach((card) => card.render(now));
  chart.draw(busy.length > 0 ? now : undefined);
  const { median, p99, longest } = chart.stats ?? {};
  show_number("gap-median", median && ms(median));
  show_number("gap-p99", p99 && ms(p99));
  show_number("gap-longest", longest && ms(longest));
  const speed = (busy.length > 0 ? busy : cards).reduce((sum, card) => sum + card.speed, 0);
  show_number("rate", speed > 0 && `${per_second(speed)} tokens/s`);
  if (busy.length > 0) ask_frame();
}

function show_number(id, words) {
  if (words && $(id).textContent !== words) $(id).textContent = words;
  if (!words) $(id).textContent = "–";
}

function show_controls() {
  $("stop").disabled = running().length === 0;
  $("add").disabled = free_slot() === undefined;
  $("streams").dataset.count = cards.length;
  if (cards.length > 0) watch_device(running().length > 0);
}

/** The server's greeting fills in which models there are and how far the settings go. */
function greet({ models, limits }) {
  const chosen = $("model").value;
  $("model").replaceChildren(...models.map((name) => new Option(name, name, false, name === chosen)));
  $("model").disabled = models.length < 2;
  if (limits?.max_tokens) form.elements.max_tokens.max = limits.max_tokens;
}

function offer_examples() {
  for (const { name, mode, text } of examples) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name;
    button.onclick = () => {
      $("prompt").value = text;
      form.elements.mode.value = mode;
      show_mode();
      $("prompt").focus();
    };
    $("examples").append(button);
  }
}

function show_mode() {
  $("prompt").placeholder =
    form.elements.mode.value === "chat"
      ? "Ask something, and the model answers."
      : "Write the beginning of something, and the model goes on.";
}

form.onsubmit = (event) => {
  event.preventDefault();
  run();
};
form.addEventListener("change", show_mode);
$("stop").onclick = stop_all;
$("add").onclick = add;
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    run();
  }
  if (event.key === "Escape") stop_all();
});

addEventListener("pagehide", stop_all); // a stream outlives its connection, but not its reader

offer_examples();
stay_connected({ use: (now) => (client = now), greet, say });
