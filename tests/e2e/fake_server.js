// fake_server.js — a scripted weir server: serves net/page and speaks weir.v1, with a plan for each request
// in place of a model.
import { randomBytes } from "node:crypto";
import { createReadStream, existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
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

/** The statistics of a server with four jobs that decode, one that prefills and two that wait. */
export const busy = {
  jobs: { queued: 2, prefilling: 1, decoding: 4, paused: 0, finished: 9 },
  pages: { total: 1024, free: 700, cached: 260, used: 64 },
  tokens_per_s: 812.4,
  step_ms: { p50: 4.9, p99: 7.2 },
};

/**
 * A plan: {refuse: {code, message, param?}} or {pieces: [{delta, n?, seq?, part?, call?} or {parts, …}],
 * gap_ms: (i) => ms, finish_reason}. A job runs whether anybody follows it or not, and is kept until the
 * server stops.
 * @param {{port?: number, key?: string, admin_key?: string, tokens_per_s?: number, hold_at?: number,
 *   presets?: string[], plan?: (request: object) => object | undefined}} [options] hold_at: the number of
 *   pieces after which each job waits for release(), so that a test acts in mid-answer however slow its
 *   browser is; plan: the plan for a request; undefined: a story, told at tokens_per_s
 */
export async function start_fake({
  port = 0,
  key,
  admin_key,
  tokens_per_s = 50,
  hold_at = Infinity,
  presets = [],
  plan = () => undefined,
} = {}) {
  const server = {
    /** Every frame of every client. */ received: [],
    /** By response_id. */ jobs: new Map(),
    hold_at,
    /** The protocols that each socket offered. */ offered: [],
    /** What answers a resume in place of the job: an error frame's fields. */ refuse_resume: undefined,
    /** Answers upgrades with 403. */ refuse_upgrades: false,
    /** By browser token: the request for it. */ tokens: new Map(),
    /** Sends nothing more, and hears everything, as a peer whose network is gone. */ mute: false,
    /** Which models are there. */ models: ["story-teller", "sim"],
    /** What /v1/stats says of a load: {model, done, total}. */ loading: undefined,
    /** What else /v1/stats says. */ stats: busy,
    /** What /v1/admin/models says. */ admin: { models: [], devices: [] },
    /** Every question and order of an administrator: {method, url, bearer, status, body}. */ asked: [],
    /** Refuses every administrator. */ forbid: false,
    /** What refuses an order: {status, message}.
     * @type {(name: string, what: object) => object | undefined} */
    refuse_order: () => undefined,
    /** The number of bytes, or of frames, after which a new socket is cut; undefined: never.
     * @type {(offered: string) => {bytes?: number, frames?: number} | undefined} */ cut: () => undefined,
  };
  const http = createServer((request, response) => {
    const bearer = request.headers.authorization?.replace("Bearer ", "");
    const known = !key || (bearer && [key, admin_key].includes(bearer)) || server.tokens.has(bearer);
    const answers = {
      "/v1/models": { data: server.models.map((id) => ({ id })), presets },
      "/v1/stats": { ...server.stats, loading: server.loading },
    };
    if (request.url === "/health/live") return response.end("{}");
    if (request.url === "/v1/stream/tokens")
      return give_token(request, response, { key, tokens: server.tokens });
    if (request.url.startsWith("/v1/admin/models")) {
      const right = !server.forbid && (!key || bearer === admin_key);
      return administer(request, response, server, { bearer, known, right });
    }
    if (!(request.url in answers)) return serve_file(request, response);
    const answer = known ? answers[request.url] : { error: { message: "a key is needed" } };
    response.writeHead(known ? 200 : 401).end(JSON.stringify(answer));
  });
  const sockets = new WebSocketServer({
    noServer: true,
    handleProtocols: (offered) => (offered.has("weir.v1") ? "weir.v1" : false),
  });
  http.on("upgrade", (request, socket, head) => {
    socket.on("error", () => {}); // a cut socket
    if (request.url !== "/v1/stream") return socket.end("HTTP/1.1 404 Not Found\r\n\r\n");
    if (server.refuse_upgrades) return socket.end("HTTP/1.1 403 Forbidden\r\n\r\n");
    sockets.handleUpgrade(request, socket, head, (ws) => {
      const offered = request.headers["sec-websocket-protocol"] ?? "";
      const known = [key ?? "", ...server.tokens.keys()];
      const bearers = known.map((text) => "bearer." + Buffer.from(text).toString("base64url"));
      server.offered.push(offered);
      const cut = server.cut(offered);
      if (key && !offered.includes("bearer.")) return; // session.auth may still come
      if (key && !offered.split(/, */).some((one) => bearers.includes(one))) return ws.close(4401, "bad key");
      if (cut?.bytes !== undefined) cut_after(socket, cut.bytes);
      session(ws, (asked) => plan(asked) ?? story(asked, 1000 / tokens_per_s), server, cut?.frames);
    });
  });
  await new Promise((resolve) => http.listen(port, "127.0.0.1", resolve));
  const bound = http.address().port;
  return Object.assign(server, {
    url: `http://127.0.0.1:${bound}/`,
    port: bound,
    /** Cuts every socket without a goodbye. */
    drop: () => sockets.clients.forEach((ws) => ws.terminate()),
    /** Closes every socket with this code. */
    close: (code, reason) => sockets.clients.forEach((ws) => ws.close(code, reason)),
    /** Sends session.closing to every client, and closes the sockets that are still open at the deadline. */
    leave: (deadline_ms) => {
      const frame = JSON.stringify({ type: "session.closing", reason: "max_age", deadline_ms });
      for (const ws of sockets.clients) {
        ws.send(frame);
        setTimeout(() => ws.close(4441), deadline_ms).unref();
      }
    },
    /** Lets every job go on to its end. */
    release: () => {
      server.hold_at = Infinity;
      server.jobs.forEach((job) => job.go_on());
    },
    /** How many sockets are open. */
    open: () => [...sockets.clients].filter((ws) => ws.readyState === ws.OPEN).length,
    stop: () => {
      server.jobs.forEach((job) => job.forget());
      sockets.clients.forEach((ws) => ws.terminate());
      http.closeAllConnections();
      return new Promise((resolve) => http.close(resolve));
    },
  });
}

/** The Content-Security-Policy that the server sends. */
const page_policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "frame-ancestors 'none'";

function serve_file(request, response) {
  const name = request.url === "/" ? "index.html" : normalize(request.url);
  const file = join(page_dir, name);
  if (!existsSync(file)) return response.writeHead(404).end();
  response.writeHead(200, { "content-type": mime[extname(name)], "content-security-policy": page_policy });
  createReadStream(file).pipe(response);
}

/** /v1/admin/models, and the orders under it. */
async function administer(request, response, server, { bearer, known, right }) {
  let body = "";
  for await (const chunk of request) body += chunk;
  const asked = { method: request.method, url: request.url, bearer, body: body && JSON.parse(body) };
  const name = decodeURIComponent(request.url.split("/")[4] ?? "");
  const refusal = right ? name && server.refuse_order(name, asked.body) : not_for(known);
  const status = refusal?.status ?? 200;
  server.asked.push({ ...asked, name, status });
  const error = { error: { message: refusal?.message } };
  response.writeHead(status).end(JSON.stringify(status === 200 ? server.admin : error));
}

const not_for = (known) =>
  known
    ? { status: 403, message: "this needs the key of an admin" }
    : { status: 401, message: "unknown key" };

/** POST /v1/stream/tokens: gives a token for the key in the header. The token does not show the key. */
async function give_token(request, response, { key, tokens }) {
  if (request.headers.authorization !== `Bearer ${key}`)
    return response.writeHead(401).end(JSON.stringify({ error: { message: "this key is not known" } }));
  let body = "";
  for await (const chunk of request) body += chunk;
  const asked = JSON.parse(body);
  const token = "token-" + randomBytes(8).toString("hex");
  tokens.set(token, asked);
  response.end(JSON.stringify({ token, expires_at: Math.floor(Date.now() / 1000) + asked.ttl_s }));
}

/** Destroys the socket after `bytes` more bytes, be it in the middle of a frame. */
function cut_after(socket, bytes) {
  const write = socket.write.bind(socket);
  socket.write = (data, ...more) => {
    const chunk = Buffer.from(data);
    const room = bytes;
    bytes -= chunk.length;
    if (bytes > 0) return write(chunk, ...more);
    if (room > 0) write(chunk.subarray(0, room), () => socket.destroy());
    return false;
  };
}

function session(ws, plan, server, frames = Infinity) {
  const { received, jobs } = server;
  const lanes = new Map(); // by id: {job, follower}
  const send = (frame) => {
    if (ws.readyState !== ws.OPEN || server.mute) return;
    if (frames-- > 0) ws.send(JSON.stringify(frame));
    else ws.terminate();
  };
  send({
    type: "session.created",
    session_id: "s_1",
    server: "weir/0.1.0",
    models: server.models,
    limits: {
      max_jobs: 32,
      max_frame: 262144,
      max_tokens: 8192,
      detach_grace_ms: 30000,
      retain_ms: 120000,
      max_age_ms: 3600000,
    },
  });
  ws.on("close", () => lanes.forEach(({ job, follower }) => job.leave(follower)));
  const follow = (id, job, frame) => {
    const follower = {
      id,
      window: frame.window ?? job.request.window ?? Infinity,
      acked: frame.after ?? 0,
      seq: frame.after ?? 0,
      next: job.after(frame.after ?? 0),
      send: (frame) => {
        if (frame.type === "response.done") lanes.delete(id);
        send({ ...frame, id });
      },
    };
    lanes.set(id, { job, follower });
    job.follow(follower);
  };
  const create = (frame) => {
    const todo = plan(frame);
    if (todo.refuse) return send({ type: "error", id: frame.id, fatal: false, ...todo.refuse });
    const job = new Job(frame, todo, server);
    jobs.set(job.response_id, job);
    const { response_id } = job;
    const model = frame.model ?? "story-teller";
    send({ type: "response.created", id: frame.id, response_id, seq: 0, model });
    follow(frame.id, job, frame);
  };
  const resume = (frame, { id, response_id, after } = frame) => {
    const job = jobs.get(response_id);
    const wrong = server.refuse_resume ?? (job ? undefined : not_found);
    if (wrong) return send({ type: "error", id, fatal: false, ...wrong });
    if (job.after(after) < 0)
      return send({ type: "error", id, code: "invalid_cursor", message: `after: ${after}`, fatal: false });
    send({ type: "response.resumed", id, response_id, after, seq: job.seq, status: job.status });
    follow(id, job, frame);
  };
  ws.on("message", (data) => {
    const frame = JSON.parse(data);
    received.push(frame);
    const lane = lanes.get(frame.id);
    switch (frame.type) {
      case "ping":
        return send({ type: "pong", ts: frame.ts });
      case "response.create":
        return create(frame);
      case "response.resume":
        return resume(frame);
      case "response.cancel":
        return lane?.job.cancel();
      case "response.ack":
        return lane?.job.ack(lane.follower, frame.seq);
    }
    send({ type: "error", code: "unknown_type", message: frame.type, fatal: false });
  });
}

const not_found = { code: "not_found", message: "no such response" };

/** Plays one plan into a log that any number of lanes follow; each of them gets exactly one response.done. */
class Job {
  response_id = randomBytes(16).toString("hex");
  status = "in_progress";
  seq = 0;
  #log = []; // deltas without an id
  #followers = new Set();
  #started = Date.now();
  #timer;
  #held; // the step that waits for go_on()
  #done;
  #given_up = false; // nobody wants what is not sent yet

  constructor(request, { pieces, gap_ms, finish_reason = "stop" }, server) {
    this.request = request;
    let next = 0;
    const step = () => {
      if (next >= server.hold_at) return (this.#held = step);
      if (next === pieces.length)
        return this.finish(finish_reason === "length" ? "incomplete" : "completed", finish_reason);
      const piece = pieces[next++];
      this.seq = piece.seq ?? this.seq + (piece.n ?? 1);
      const t = (Date.now() - this.#started) * 1000;
      this.#log.push({ type: "response.delta", t, ...piece, seq: this.seq });
      this.#timer = setTimeout(step, gap_ms(next));
      for (const follower of this.#followers) this.#deliver(follower);
    };
    this.#timer = setTimeout(step, gap_ms(0));
  }

  go_on() {
    const step = this.#held;
    this.#held = undefined;
    step?.();
  }

  /** The place in the log after the token `seq`, or -1. */
  after(seq) {
    return seq === 0 ? 0 : this.#log.findLastIndex((piece) => piece.seq === seq) + 1 || -1;
  }

  follow(follower) {
    this.#followers.add(follower);
    this.#deliver(follower);
  }

  leave(follower) {
    this.#followers.delete(follower);
    if (this.#followers.size === 0 && this.request.on_disconnect === "cancel") this.cancel();
  }

  ack(follower, seq) {
    follower.acked = seq;
    this.#deliver(follower);
  }

  /** A job that is over, and is still being read, ends at once for its readers: as on the server. */
  cancel() {
    this.finish("cancelled", "cancel");
    this.#given_up = true;
    for (const follower of [...this.#followers]) this.#deliver(follower);
  }

  finish(status, reason) {
    if (this.#done) return;
    this.forget();
    this.status = status;
    this.#done = {
      type: "response.done",
      response_id: this.response_id,
      seq: this.seq,
      status,
      finish_reason: reason,
      usage: { input_tokens: 9, output_tokens: this.seq, cached_tokens: 0 },
      timing: { ttft_ms: 42, decode_ms: Math.max(0, this.seq - 1) * 5 },
    };
    for (const follower of [...this.#followers]) this.#deliver(follower);
  }

  forget() {
    clearTimeout(this.#timer);
    this.#held = undefined;
  }

  /** Sends, in one frame for each part, the pieces that begin within the window. response.done follows once
   * all pieces are sent, or at once after a cancel. */
  #deliver(follower) {
    const most = follower.acked + follower.window;
    const waiting = this.#log.slice(follower.next).filter(({ seq, n = 1 }) => seq - n < most);
    for (const run of runs_of(waiting)) {
      const last = run.at(-1);
      const n = run.reduce((sum, piece) => sum + (piece.n ?? 1), 0);
      const delta = run.map((piece) => piece.delta).join("");
      follower.seq = last.seq;
      follower.next += run.length;
      follower.send(run.length === 1 ? last : { ...last, call: run[0].call, n, delta });
    }
    if (!this.#done || (follower.next < this.#log.length && !this.#given_up)) return;
    this.#followers.delete(follower);
    follower.send({ ...this.#done, seq: follower.seq });
  }
}

/** Pieces that one frame may have together: all of one part. */
function runs_of(pieces) {
  const runs = [];
  const joins = (a, b) => !a.parts && !b.parts && a.part === b.part && a.call?.index === b.call?.index;
  for (const piece of pieces)
    if (runs.length > 0 && joins(runs.at(-1)[0], piece)) runs.at(-1).push(piece);
    else runs.push([piece]);
  return runs;
}

/** A plan: six sentences, repeated up to max_tokens. The seed chooses the first of them. */
export function story({ seed = 0, max_tokens = 120 }, gap) {
  const order = sentences.map((_, i) => sentences[(seed + i) % sentences.length]);
  const words = (" " + order.join(" ")).match(/ ?[^ ]{1,5}/g);
  const pieces = Array.from({ length: max_tokens }, (_, i) => ({ delta: words[i % words.length] }));
  return { pieces, gap_ms: (i) => (i === 0 ? 60 : gap), finish_reason: "length" };
}
