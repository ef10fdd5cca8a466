// weir.js — the client of a weir server: one WebSocket, many streams of tokens. For browsers and for Node 21
// or newer (an older Node passes a `WebSocket` class in the options). No dependencies, no DOM.
//
//   import { connect } from "http://127.0.0.1:8080/weir.js";
//   const client = connect("http://127.0.0.1:8080");
//   const stream = client.create({ input: "Once upon a time", max_tokens: 64 });
//   for await (const { text } of stream) output.append(text);
//   const { status, usage } = await stream.done;
//
// 1. A stream ends in exactly one result, whatever server and network do: `stream.done` never rejects.
// 2. No gap and no repeat is ever shown: a frame covers the tokens (seq - n, seq]; where it does not join the
//    one before it, the stream ends with the error `gap` or `repeat` instead of with wrong text.
// 3. A lost socket is dialled again by itself, after 0.25 s doubling to 8 s, with jitter. Streams that ran on
//    it end with the error `connection_lost`. A refused key or origin is not tried again.
// 4. Frames of a stream that is over are ignored: tokens may still be on their way when it is cancelled.

const protocol = "weir.v1";
const first_retry_ms = 250;
const longest_retry_ms = 8_000;
const answer_within_ms = 12_000; // from dialling to session.created, where a missing key is said after 10 s
const ping_every_ms = 15_000; // nothing at all heard between two pings: the socket is dead
const steady_after_ms = 5_000; // a session that lasted this long starts the back-off anew

/**
 * @typedef {{code: string, message: string, param?: string, retry_after_ms?: number}} Failure
 * @typedef {{role: string, content: string}} Message
 * @typedef {{input: string | Message[] | number[], model?: string, max_tokens?: number, temperature?: number,
 *   top_p?: number, top_k?: number, min_p?: number, repetition_penalty?: number, frequency_penalty?: number,
 *   presence_penalty?: number, seed?: number, stop?: string | string[], ignore_eos?: boolean,
 *   timing?: boolean, on_disconnect?: "continue" | "cancel", [field: string]: unknown}} Request every field
 *   goes to the server as it is
 * @typedef {{text: string, seq: number, n: number, t?: number, at: number, token_ids?: number[]}} Delta
 *   seq: tokens received so far; n: tokens in this frame; t: µs from job start to sampling, if `timing` was
 *   asked; at: when the frame arrived, on performance.now()'s clock
 * @typedef {{status: "completed" | "incomplete" | "cancelled" | "failed", finish_reason: string,
 *   usage?: {input_tokens: number, output_tokens: number, cached_tokens?: number},
 *   timing?: {[name: string]: number}, error?: Failure}} Result
 * @typedef {{session_id: string, server: string, models: string[], limits: {[name: string]: number}}} Session
 * @typedef {"connecting" | "open" | "waiting" | "closed"} State waiting: for the next attempt
 */

/**
 * Connects, and stays connected until `close()`.
 * @param {string | URL} url of the server (`http://host:port`) or of its socket (`ws://host:port/v1/stream`)
 * @param {{key?: string, WebSocket?: any}} [options] key: the API key, where the server asks for one
 */
export function connect(url, options = {}) {
  return new Client(url, options);
}

class Emitter {
  #listeners = new Map();

  /** Calls `listener` on each event of this name; returns a function that ends it. */
  on(name, listener) {
    if (!this.#listeners.has(name)) this.#listeners.set(name, new Set());
    this.#listeners.get(name).add(listener);
    return () => this.#listeners.get(name).delete(listener);
  }

  /** @internal */
  emit(name, value) {
    for (const listener of this.#listeners.get(name) ?? []) listener(value);
  }
}

/**
 * Events: `state` ({state, error?, retry_ms?}), `error` (a Failure that belongs to no stream), `closing` (the
 * server asks to leave: {reason, deadline_ms}).
 */
export class Client extends Emitter {
  /** @type {State} */ state = "connecting";
  /** @type {Session | null} the server's greeting, kept while the connection is lost */ session = null;
  #url;
  #protocols;
  #WebSocket;
  #socket = null;
  #streams = new Map(); // by lane; a lane's number is never used twice
  #lanes = 0;
  #failures = 0;
  #opened_at = 0;
  #timer = 0; // the one thing waited for: an answer, the next ping or the next attempt
  #heard = false;

  constructor(url, { key, WebSocket = globalThis.WebSocket }) {
    super();
    this.#url = socket_url(url);
    this.#protocols = key ? [protocol, "bearer." + base64url(key)] : [protocol];
    this.#WebSocket = WebSocket;
    this.#dial();
  }

  /**
   * Starts a stream. Before the connection stands it waits for the attempt that is under way; an attempt that
   * is still to come is made at once.
   * @param {Request} request
   */
  create(request) {
    const lane = String(++this.#lanes);
    const stream = new Stream(lane, request, () => this.#cancel(lane));
    this.#streams.set(lane, stream);
    if (this.state === "open") this.#ask(lane, request);
    if (this.state === "waiting") this.#dial();
    if (this.state === "closed") queueMicrotask(() => this.#end(lane, failed(closed)));
    return stream;
  }

  /** Dials now instead of at the end of the back-off. */
  retry() {
    if (this.state === "waiting") this.#dial();
  }

  /** Ends every stream and the connection, for good. */
  close() {
    this.#drop(1000);
    this.#become("closed");
    for (const lane of [...this.#streams.keys()]) this.#end(lane, failed(closed));
  }

  #dial() {
    clearTimeout(this.#timer);
    this.#become("connecting");
    const socket = new this.#WebSocket(this.#url, this.#protocols);
    this.#socket = socket;
    socket.onmessage = (event) => this.#receive(event.data);
    socket.onclose = (event) => this.#lost(close_failure(event.code, event.reason, this.#opened_at > 0));
    socket.onerror = () => {}; // says nothing that the close after it does not
    this.#timer = setTimeout(() => this.#lost(close_failure(1006, "", false)), answer_within_ms);
  }

  #receive(data) {
    this.#heard = true;
    let frame;
    try {
      frame = JSON.parse(data);
    } catch {
      return this.#lost({ code: "bad_frame", message: "The server sent something that is not JSON." });
    }
    const stream = this.#streams.get(frame.id);
    switch (frame.type) {
      case "session.created":
        return this.#open(frame);
      case "session.closing":
        return this.emit("closing", frame);
      case "ping":
        return this.#send({ type: "pong", ts: frame.ts });
      case "response.created":
        return stream?.start(frame);
      case "response.delta":
        return stream && this.#delta(stream, frame);
      case "response.done":
        return stream && this.#end(frame.id, stream.proof(frame.seq) ?? frame);
      case "error":
        return this.#error(stream, frame);
    }
  }

  #open({ type, ...session }) {
    this.session = session;
    this.#opened_at = performance.now();
    clearTimeout(this.#timer);
    this.#ping();
    this.#become("open");
    for (const [lane, { request }] of this.#streams) this.#ask(lane, request);
  }

  #ask(lane, request) {
    this.#send({ ...request, type: "response.create", id: lane });
  }

  #delta(stream, frame) {
    const broken = stream.proof(frame.seq - (frame.n ?? 1));
    if (!broken) return stream.push(frame);
    this.#send({ type: "response.cancel", id: stream.id });
    this.#end(stream.id, broken);
  }

  /** A refusal ends its lane; what comes for a lane that is over is of no use to anybody. */
  #error(stream, { type, id, fatal, ...failure }) {
    if (stream && !stream.response_id) this.#end(id, failed(failure));
    else if (stream || id === undefined) this.emit("error", failure);
  }

  #cancel(lane) {
    if (!this.#streams.has(lane)) return;
    if (this.state === "open") this.#send({ type: "response.cancel", id: lane });
    else this.#end(lane, { status: "cancelled", finish_reason: "cancel" });
  }

  #ping() {
    this.#heard = false;
    this.#send({ type: "ping", ts: Math.round(performance.now()) });
    this.#timer = setTimeout(() => {
      if (this.#heard) this.#ping();
      else this.#lost({ code: "connection_lost", message: "The server has stopped answering." });
    }, ping_every_ms);
  }

  /** The only place that decides what a lost socket means for the streams on it. */
  #lost(error) {
    const lanes = [...this.#streams.keys()]; // a listener may create new ones, which are not lost
    if (this.#opened_at > 0 && performance.now() - this.#opened_at > steady_after_ms) this.#failures = 0;
    this.#opened_at = 0;
    this.#drop();
    if (final_codes.has(error.code)) {
      this.#become("closed", { error });
    } else {
      const longest = Math.min(longest_retry_ms, first_retry_ms * 2 ** this.#failures++);
      const retry_ms = Math.round(longest * (0.5 + Math.random() / 2));
      this.#timer = setTimeout(() => this.#dial(), retry_ms);
      this.#become("waiting", { error, retry_ms });
    }
    for (const lane of lanes) this.#end(lane, failed(error));
  }

  #drop(code) {
    clearTimeout(this.#timer);
    if (!this.#socket) return;
    this.#socket.onmessage = this.#socket.onclose = null; // a dead peer can delay the close event by minutes
    this.#socket.close(code);
    this.#socket = null;
  }

  #send(frame) {
    this.#socket?.send(JSON.stringify(frame));
  }

  #end(lane, result) {
    const stream = this.#streams.get(lane);
    this.#streams.delete(lane);
    stream?.end(result);
  }

  #become(state, more = {}) {
    this.state = state;
    this.emit("state", { state, ...more });
  }
}

/**
 * What one prompt becomes. An iterator made at any time starts with the first delta; leaving its loop early
 * cancels the stream; a stream that failed makes the loop throw a WeirError.
 * Events: `created`, `delta` (a Delta), `done` (the Result).
 */
export class Stream extends Emitter {
  /** @type {string | null} set once the server has taken the job */ response_id = null;
  /** Tokens received. */ seq = 0;
  /** @type {Delta[]} */ deltas = [];
  /** @type {Result | null} */ result = null;
  /** @type {Promise<Result>} */ done;
  #cancel;
  #settle;
  #wake = () => {};

  /** @internal */
  constructor(id, request, cancel) {
    super();
    this.id = id;
    this.request = request;
    this.done = new Promise((resolve) => (this.#settle = resolve));
    this.#cancel = cancel;
  }

  /** Asks the server to stop; `done` follows as `cancelled`, unless another end was faster. Idempotent. */
  cancel() {
    this.#cancel();
  }

  async *[Symbol.asyncIterator]() {
    try {
      for (let next = 0; ;) {
        while (next < this.deltas.length) yield this.deltas[next++];
        if (this.result) break;
        await new Promise((resolve) => (this.#wake = both(this.#wake, resolve)));
      }
      if (this.result.error) throw new WeirError(this.result.error);
    } finally {
      this.cancel();
    }
  }

  /** @internal Nothing where `seq` joins what was received, else the result that says what is wrong. */
  proof(seq) {
    if (seq === this.seq) return undefined;
    return seq > this.seq
      ? failed({ code: "gap", message: `Tokens ${this.seq + 1} to ${seq} never arrived.` })
      : failed({ code: "repeat", message: `The token after ${seq} arrived twice.` });
  }

  /** @internal */
  start(frame) {
    this.response_id = frame.response_id;
    this.emit("created", frame);
  }

  /** @internal */
  push({ type, id, delta: text, n = 1, ...more }) {
    this.seq = more.seq;
    const delta = { text, n, at: performance.now(), ...more };
    this.deltas.push(delta);
    this.emit("delta", delta);
    this.#news();
  }

  /** @internal */
  end({ type, id, response_id, seq, ...result }) {
    this.result = result;
    this.emit("done", result);
    this.#settle(result);
    this.#news();
  }

  #news() {
    const wake = this.#wake;
    this.#wake = () => {};
    wake();
  }
}

/** What a `for await` over a stream throws. */
export class WeirError extends Error {
  /** @param {Failure} failure */
  constructor(failure) {
    super(failure.message);
    Object.assign(this, failure);
    this.name = "WeirError";
  }
}

const closed = { code: "closed", message: "The client is closed." };
const final_codes = new Set(["bad_key", "forbidden"]);

/** What a close code means, in words for people. @returns {Failure} */
function close_failure(code, reason, was_open) {
  const known = {
    1001: ["shutdown", "The server is shutting down."],
    1012: ["shutdown", "The server is restarting."],
    1013: ["overloaded", "The server is busy and takes no more connections right now."],
    4401: ["bad_key", "The server does not accept this key."],
    4403: ["forbidden", "The server does not allow this page or this model."],
    4408: ["bad_key", "The server asks for a key."],
    4429: ["rate_limited", "The server has had too many messages from here."],
    4440: ["slow_consumer", "This page read too slowly, and the server let it go."],
    4441: ["max_age", "The server ends connections of this age; a new one is made."],
  }[code];
  if (known) return { code: known[0], message: known[1] };
  const silence = was_open ? "The connection to the server was lost." : "The server is not answering.";
  return { code: "connection_lost", message: reason || silence };
}

/** @param {Failure} error @returns {Result} */
function failed(error) {
  return { status: "failed", finish_reason: "error", error };
}

function both(first, second) {
  return () => {
    first();
    second();
  };
}

function socket_url(url) {
  const parsed = new URL(url);
  parsed.protocol = parsed.protocol.replace("http", "ws");
  if (parsed.pathname === "/") parsed.pathname = "/v1/stream";
  return parsed.href;
}

function base64url(text) {
  const bytes = new TextEncoder().encode(text);
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}
