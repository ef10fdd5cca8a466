// fake_server.js — a scripted weir server: serves net/page and speaks weir.v1, with a plan for each request
// in place of a model.
import { createReadStream, existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { basename, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { WebSocketServer } from "ws";

const page_dir = fileURLToPath(new URL("../../net/page/", import.meta.url));
const mime = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };
const sentences = [
  "The river came down from the hills in surges, and at the weir it became a smooth sheet of glass.",
  "Otters sleep on their backs and hold hands, so that the current does not carry them apart.",
  "In the morning the miller opened the gate by a hand's breadth, and the wheel began to move.",
  "Nobody in the valley could remember a spring with so much water, nor one so quiet.",
  "A heron stood in the shallows and waited, as it had waited every day of that long summer.",
  "When the lamps were lit she wrote one more letter, folded it, and put it under the loaf of bread.",
];

/** A module of the page that imports no other; Node below 22 does not take its .js for a module. */
export function load_module(name) {
  return import("data:text/javascript," + encodeURIComponent(readFileSync(join(page_dir, name), "utf8")));
}

/** What a server tells of itself while four streams are written, one prompt is read and two wait. */
const busy = {
  jobs: { queued: 2, prefilling: 1, decoding: 4, paused: 0, finished: 9 },
  pages: { total: 1024, free: 700, cached: 260, used: 64 },
  tokens_per_s: 812.4,
  step_ms: { p50: 4.9, p99: 7.2 },
};

/**
 * A plan: {refuse: {code, message, param?}} or {pieces: [{delta, n?, seq?}], gap_ms: (i) => ms,
 * finish_reason}.
 * @param {{port?: number, key?: string, tokens_per_s?: number, plan?: (request: object) => object |
 *   undefined}} [options] plan: what to do with a request; undefined means a story told at tokens_per_s
 */
export async function start_fake({ port = 0, key, tokens_per_s = 50, plan = () => undefined } = {}) {
  const http = createServer((request, response) => {
    const known = !key || request.headers.authorization === `Bearer ${key}`;
    const answers = { "/v1/models": { data: [] }, "/v1/stats": busy };
    if (!(request.url in answers)) return serve_file(request, response);
    const answer = known ? answers[request.url] : { error: { message: "a key is needed" } };
    response.writeHead(known ? 200 : 401).end(JSON.stringify(answer));
  });
  const sockets = new WebSocketServer({
    noServer: true,
    handleProtocols: (offered) => (offered.has("weir.v1") ? "weir.v1" : false),
  });
  const received = [];
  http.on("upgrade", (request, socket, head) => {
    if (request.url !== "/v1/stream") return socket.end("HTTP/1.1 404 Not Found\r\n\r\n");
    sockets.handleUpgrade(request, socket, head, (ws) => {
      const offered = request.headers["sec-websocket-protocol"] ?? "";
      const bearer = "bearer." + Buffer.from(key ?? "").toString("base64url");
      if (key && !offered.includes("bearer.")) return; // session.auth may still come
      if (key && !offered.split(/, */).includes(bearer)) return ws.close(4401, "bad key");
      session(ws, (asked) => plan(asked) ?? story(asked, 1000 / tokens_per_s), received);
    });
  });
  await new Promise((resolve) => http.listen(port, "127.0.0.1", resolve));
  const bound = http.address().port;
  return {
    url: `http://127.0.0.1:${bound}/`,
    port: bound,
    received,
    /** Cuts every socket without a goodbye. */
    drop: () => sockets.clients.forEach((ws) => ws.terminate()),
    /** Closes every socket with this code. */
    close: (code, reason) => sockets.clients.forEach((ws) => ws.close(code, reason)),
    stop: () => {
      sockets.clients.forEach((ws) => ws.terminate());
      http.closeAllConnections();
      return new Promise((resolve) => http.close(resolve));
    },
  };
}

function serve_file(request, response) {
  const name = request.url === "/" ? "index.html" : basename(request.url);
  const file = join(page_dir, name);
  if (!existsSync(file)) return response.writeHead(404).end();
  response.writeHead(200, {
    "content-type": mime[extname(name)],
    "content-security-policy": "default-src 'self'",
  });
  createReadStream(file).pipe(response);
}

function session(ws, plan, received) {
  const lanes = new Map();
  const send = (frame) => ws.readyState === ws.OPEN && ws.send(JSON.stringify(frame));
  send({
    type: "session.created",
    session_id: "s_1",
    server: "weir/0.1.0",
    models: ["story-teller", "sim"],
    limits: {
      max_jobs: 32,
      max_frame: 262144,
      max_tokens: 8192,
      detach_grace_ms: 30000,
      retain_ms: 120000,
      max_age_ms: 3600000,
    },
  });
  ws.on("close", () => lanes.forEach((lane) => lane.forget()));
  ws.on("message", (data) => {
    const frame = JSON.parse(data);
    received.push(frame);
    if (frame.type === "ping") return send({ type: "pong", ts: frame.ts });
    if (frame.type === "response.cancel") return lanes.get(frame.id)?.finish("cancelled", "cancel");
    if (frame.type !== "response.create")
      return send({ type: "error", code: "unknown_type", message: frame.type, fatal: false });
    const todo = plan(frame);
    if (todo.refuse) return send({ type: "error", id: frame.id, fatal: false, ...todo.refuse });
    lanes.set(
      frame.id,
      run(frame, todo, send, () => lanes.delete(frame.id)),
    );
  });
}

/** Plays one plan; every job ends in exactly one response.done. */
function run({ id, model = "story-teller" }, { pieces, gap_ms, finish_reason = "stop" }, send, over) {
  const response_id = Math.random().toString(16).slice(2).padEnd(32, "0");
  const started = Date.now();
  let seq = 0;
  let next = 0;
  let timer = 0;
  const forget = () => clearTimeout(timer);
  const finish = (status, reason) => {
    forget();
    over();
    send({
      type: "response.done",
      id,
      response_id,
      seq,
      status,
      finish_reason: reason,
      usage: { input_tokens: 9, output_tokens: seq, cached_tokens: 0 },
    });
  };
  const step = () => {
    if (next === pieces.length)
      return finish(finish_reason === "length" ? "incomplete" : "completed", finish_reason);
    const piece = pieces[next++];
    seq = piece.seq ?? seq + (piece.n ?? 1);
    send({ type: "response.delta", id, seq, t: (Date.now() - started) * 1000, ...piece, seq });
    timer = setTimeout(step, gap_ms(next));
  };
  send({ type: "response.created", id, response_id, seq: 0, model });
  timer = setTimeout(step, gap_ms(0));
  return { forget, finish };
}

/** Six sentences, begun at one that the seed chooses, told again and again up to max_tokens. */
export function story({ seed = 0, max_tokens = 120 }, gap) {
  const order = sentences.map((_, i) => sentences[(seed + i) % sentences.length]);
  const words = (" " + order.join(" ")).match(/ ?[^ ]{1,5}/g);
  const pieces = Array.from({ length: max_tokens }, (_, i) => ({ delta: words[i % words.length] }));
  return { pieces, gap_ms: (i) => (i === 0 ? 60 : gap), finish_reason: "length" };
}
