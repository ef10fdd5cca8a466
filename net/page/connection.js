// connection.js — the client of this page, and what its state means, in plain words at the top of the page.
import { Cable, is_cut } from "./cable.js";
import { authorization, forget_token, swap, token } from "./credentials.js";
import { connect } from "./weir.js";

const $ = (id) => document.getElementById(id);
const pill = {
  connecting: "connecting…",
  open: "connected",
  waiting: "not connected",
  closed: "not connected",
};
/** @type {import("./weir.js").Client} */ let client;
let again_at = 0;
let clock = 0;

/**
 * Connects to the server that this page came from, and anew with each key that is typed.
 * @param {{use: (client: import("./weir.js").Client) => void, say: (words: string) => void,
 *   online: (session: import("./weir.js").Session | null) => void}} page use: the client from now on;
 *   online: the session of the open connection, or null
 */
export function stay_connected(page) {
  const begin = () => {
    client?.close();
    client = connect(new URL("v1/stream", location.href), { token, WebSocket: Cable });
    client.on("state", (change) => show(change, page));
    client.on("error", ({ message }) => page.say(message));
    client.on("closing", () => notice("The server is about to close this connection."));
    page.use(client);
    ask_why();
  };
  $("retry").onclick = () => client.retry();
  $("key-form").onsubmit = (event) => {
    event.preventDefault();
    take_key(begin);
  };
  begin();
}

const expired = "The hour of your key is over. Type it again.";

/** Shows `words` and asks for the key. Without `words` the notice says that the token's hour is over. */
export function ask_for_key(words = expired) {
  notice(words, { key: true });
  $("key").focus();
}

async function take_key(begin) {
  const key = $("key").value;
  $("key").value = "";
  try {
    await swap(key);
  } catch ({ message }) {
    return ask_for_key(message);
  }
  begin();
}

function show({ state, error, retry_ms }, page) {
  $("connection").dataset.state = state;
  $("connection").textContent = pill[state];
  clearInterval(clock);
  if (state === "connecting") $("notice-when").textContent = "Trying again now…";
  else page.online(state === "open" ? client.session : null);
  if (state === "open") notice("");
  if (state === "waiting") {
    notice(is_cut() ? "The network is cut. The server writes on." : error.message, { retry: !is_cut() });
    again_at = performance.now() + retry_ms;
    count_down();
    clock = setInterval(count_down, 250);
    if (error.code === "connection_lost" && !is_cut()) ask_why();
  }
  if (state === "closed") {
    notice(error?.message ?? "");
    $("notice-when").textContent = "";
    if (error?.code === "bad_key") ask_for_key(token() ? error.message : "The server asks for a key.");
  }
}

function count_down() {
  const seconds = Math.max(1, Math.ceil((again_at - performance.now()) / 1000));
  $("notice-when").textContent = `Trying again in ${seconds} s…`;
}

/** Shows a notice. Empty words hide it. */
function notice(words, { retry = false, key = false } = {}) {
  if ($("notice-text").textContent !== words) $("notice-text").textContent = words; // read aloud once
  $("notice").hidden = words === "";
  $("retry").hidden = !retry;
  $("key-form").hidden = !key;
}

/** A browser does not tell why a socket is refused or left waiting; a plain request gets the reason. */
async function ask_why() {
  const asked = client;
  const had = token();
  try {
    const answer = await fetch("v1/models", authorization());
    if (answer.ok || client !== asked || asked.state === "open") return;
    if (answer.status === 401) {
      asked.close();
      forget_token();
      return ask_for_key(
        had ? "The server does not accept this token any more." : "The server asks for a key.",
      );
    }
    notice((await answer.json()).error.message, { retry: true });
  } catch {
    // The server does not answer at all: the notice already says so.
  }
}
