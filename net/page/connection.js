// connection.js — the client of this page, and what its state means, in plain words at the top of the page.
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
 *   greet: (session: import("./weir.js").Session) => void}} page use: the client from now on
 */
export function stay_connected(page) {
  const begin = () => {
    client?.close();
    client = connect(new URL("v1/stream", location.href), {
      token: () => sessionStorage.getItem("key"),
    });
    client.on("state", (change) => show(change, page));
    client.on("error", ({ message }) => page.say(message));
    client.on("closing", () => notice("The server is about to close this connection."));
    page.use(client);
    ask_why();
  };
  $("retry").onclick = () => client.retry();
  $("key-form").onsubmit = (event) => {
    event.preventDefault();
    sessionStorage.setItem("key", $("key").value);
    begin();
  };
  begin();
}

function show({ state, error, retry_ms }, page) {
  $("connection").dataset.state = state;
  $("connection").textContent = pill[state];
  clearInterval(clock);
  if (state === "connecting") $("notice-when").textContent = "Trying again now…";
  if (state === "open") {
    notice("");
    page.greet(client.session);
  }
  if (state === "waiting") {
    notice(error.message, { retry: true });
    again_at = performance.now() + retry_ms;
    count_down();
    clock = setInterval(count_down, 250);
    if (error.code === "connection_lost") ask_why();
  }
  if (state === "closed") {
    notice(error?.message ?? "", { key: error?.code === "bad_key" });
    $("notice-when").textContent = "";
  }
}

function count_down() {
  const seconds = Math.max(1, Math.ceil((again_at - performance.now()) / 1000));
  $("notice-when").textContent = `Trying again in ${seconds} s…`;
}

/** Empty words take it away. */
function notice(words, { retry = false, key = false } = {}) {
  if ($("notice-text").textContent !== words) $("notice-text").textContent = words; // said aloud once
  $("notice").hidden = words === "";
  $("retry").hidden = !retry;
  $("key-form").hidden = !key;
}

/** A browser does not tell why a socket is refused or left waiting; a plain request gets the reason. */
async function ask_why() {
  const asked = client;
  const key = sessionStorage.getItem("key");
  try {
    const answer = await fetch("v1/models", key ? { headers: { authorization: `Bearer ${key}` } } : {});
    if (answer.ok || client !== asked || asked.state === "open") return;
    if (answer.status === 401) {
      asked.close();
      return notice(key ? "The server does not accept this key." : "The server asks for a key.", {
        key: true,
      });
    }
    notice((await answer.json()).error.message, { retry: true });
  } catch {
    // Nobody answers at all: the words that stand there already say so.
  }
}
