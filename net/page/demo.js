// demo.js — disturbances that a reader can cause, to see that the text stays the same.
import { cut_for, make_bursty } from "./cable.js";
import { authorization } from "./credentials.js";

const $ = (id) => document.getElementById(id);
const cut_ms = 2_500;
const slow_pace = 4; // tokens a second
let slow = false;

/** @param {{client: () => import("./weir.js").Client, running: () => string | null}} page running: the id of
 * a response that is being written */
export function offer_demonstrations({ client, running }) {
  const tell = (words) => ($("demo-state").textContent = words);
  $("cut").onclick = () => {
    $("cut").disabled = true;
    tell(`The socket is dropped, and for ${cut_ms / 1000} s no other opens. The server writes on.`);
    cut_for(cut_ms);
    setTimeout(() => {
      $("cut").disabled = false;
      tell("The network is back. The text goes on after the last token that was here.");
      client().retry();
    }, cut_ms);
  };
  toggle($("slow"), (yes) => {
    slow = yes;
    tell(
      yes
        ? `This page takes ${slow_pace} tokens a second. The server keeps the rest, and others do not wait.`
        : "The page reads on at its own pace.",
    );
  });
  toggle($("bursty"), (yes) => {
    make_bursty(yes);
    tell(
      yes
        ? "Tokens arrive in bursts. The chart shows how they arrive and how they are shown."
        : "Tokens arrive as the server sends them.",
    );
  });
  $("reload").onclick = () => location.reload();
  $("kill-worker").onclick = async () => tell(await kill_worker_of(running()));
}

/** Kills the worker where the response runs, with -9. Gateways that were started for it have that route. */
async function kill_worker_of(id) {
  if (id === null) return "Nothing is being written now. Ask for something long, and press it meanwhile.";
  try {
    const headers = { ...authorization().headers, "content-type": "application/json" };
    const at = `v1/jobs/${encodeURIComponent(id)}/kill-worker`;
    const answer = await fetch(at, { method: "POST", headers, body: "{}" });
    if (answer.status === 404) return "The server has written all of it: ask for something longer.";
    if (!answer.ok) throw new Error(`${answer.status}`);
    return "The process that wrote this was killed. Another worker goes on behind the last token.";
  } catch {
    return "The server could not be asked.";
  }
}

/** The server is a gateway of a demonstration, whose workers a reader may kill. */
export function workers_may_die(yes) {
  $("kill-worker").hidden = !yes;
}

/** The pace in tokens a second: `pace`, or at most slow_pace while the slow reader is on. */
export function disturbed(pace) {
  return slow ? Math.min(pace, slow_pace) : pace;
}

function toggle(button, change) {
  button.onclick = () => {
    const yes = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(yes));
    change(yes);
  };
}
