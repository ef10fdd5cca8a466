// weir.js — the client of a weir server: one WebSocket, many streams of tokens. For browsers and for Node 22
// or newer (an older Node passes a `WebSocket` class in the options). No imports, no DOM. Types: weir.d.ts.
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
// 3. A lost socket is dialled again by itself, and its streams are resumed after their last token. A request
//    whose fate is unknown is never sent twice: a job does not run twice. A refused key or origin is final.
// 4. A page that is seen again, or a device that is online again, waits neither for the next attempt nor for a
//    dead socket to be noticed.
// 5. Frames of a stream that is over are ignored: tokens may still be on their way when it is cancelled.

const protocol = "weir.v1";
const first_retry_ms = 250; // the longest wait before the first new attempt; doubles with each
const longest_retry_ms = 8_000;
const longest_leave_ms = 1_000; // spreads the clients that a server asks to leave all at once
const answer_within_ms = 12_000; // until session.created; the server reports a missing key after 10 s
const alive_within_ms = 3_000;
const ping_every_ms = 15_000; // nothing at all heard between two pings: the socket is dead
const steady_after_ms = 5_000; // a session that lasted this long starts the back-off anew
const remember_every_ms = 500;

/** Connects, and stays connected until `close()`. `url`: of the server, or of its socket. */
export function connect(url, options) {
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

// A place is what the client knows of a stream that is not over: {stream, lane, old, cancelling}. `lane` is
// where the stream is asked for or runs; null: there is none. `old` is the lane that the stream is leaving.
// A lane is {id, link, place, asked, held}. `asked`: the server has not answered yet. `held`: the frames of
// an old lane, which are used only if the new lane is refused or lost; null on other lanes.

/**
 * Events: `state` ({state, error?, retry_ms?}), `error` (a Failure that belongs to no stream), `closing` (the
 * server asks to leave: {reason, deadline_ms}).
 */
export class Client extends Emitter {
  state = "connecting";
  /** The server's greeting, kept while the connection is lost. */ session = null;
  #url;
  #token;
  #WebSocket;
  #link = null; // the connection that is open or being made
  #leaving = new Set(); // connections that the server will close, with streams still on them
  #places = new Map(); // by stream
  #lanes = 0; // a lane's number is never used twice
  #failures = 0;
  #timer = 0; // until the next attempt
  #awake = ({ type }) => (type === "visibilitychange" && document.hidden) || this.#look_up();

  constructor(url, { token, WebSocket = globalThis.WebSocket } = {}) {
    super();
    if (typeof WebSocket !== "function") throw new TypeError(no_websocket);
    this.#url = socket_url(url);
    this.#token = token;
    this.#WebSocket = WebSocket;
    listen(this.#awake, "addEventListener");
    this.#dial();
  }

  /**
   * Starts a stream. While no connection is open, the stream waits for the attempt that is under way; without
   * one, the next attempt is made at once.
   */
  create(request, options) {
    return this.#add((hooks) => new Stream(request, null, options, hooks));
  }

  /** Resumes an earlier stream, of this page or from before a reload. `saved`: that stream's `saved`. */
  resume(saved, options) {
    if (typeof saved?.response_id !== "string" || !Number.isInteger(saved.seq) || saved.seq < 0)
      throw new TypeError("resume() takes a stream's `saved`: {response_id, seq, text?}.");
    return this.#add((hooks) => new Stream(window_of(saved), saved, options, hooks));
  }

  /** Dials now instead of at the end of the back-off. */
  retry() {
    if (this.state === "waiting") this.#dial();
  }

  /** Ends every stream and the connection, for good. */
  close() {
    clearTimeout(this.#timer);
    for (const link of [this.#link, ...this.#leaving]) link?.drop(1000);
    this.#link = null;
    this.#leaving.clear();
    this.#become("closed");
    for (const place of [...this.#places.values()]) this.#give_up(place, closed);
  }

  // ---- streams

  #add(make) {
    const place = { lane: null, old: null, cancelling: false };
    place.stream = make({ cancel: () => this.#cancel(place), ack: (seq) => this.#ack(place, seq) });
    this.#places.set(place.stream, place);
    if (this.state === "open") this.#ask(place);
    if (this.state === "waiting") this.#dial();
    if (this.state === "closed") queueMicrotask(() => this.#give_up(place, closed));
    return place.stream;
  }

  /** Asks for a stream on the open connection. If its socket is closing, the next connection asks. */
  #ask(place) {
    const { request, response_id, seq: after } = place.stream;
    const id = String(++this.#lanes);
    const frame =
      response_id === null
        ? { ...request, type: "response.create", id }
        : { ...window_of(request), type: "response.resume", id, response_id, after };
    if (!this.#link.send(frame)) return;
    if (place.lane) (place.old = place.lane).held = [];
    place.lane = { id, link: this.#link, place, asked: true, held: null };
    this.#link.lanes.set(id, place.lane);
  }

  #ask_again(place) {
    if (this.state === "open" && this.#places.has(place.stream) && !place.lane) this.#ask(place);
  }

  #cancel(place) {
    if (!this.#places.has(place.stream) || place.cancelling) return;
    place.cancelling = true;
    if (!place.lane && place.stream.response_id === null) this.#end(place, cancelled);
    else this.#send_cancel(place);
  }

  /** While a resume is not answered, the cancel waits for the answer. */
  #send_cancel({ lane, stream }) {
    if (lane && !(lane.asked && stream.response_id !== null))
      lane.link.send({ type: "response.cancel", id: lane.id });
  }

  /** Returns whether the ack was sent. A resume acknowledges all tokens up to its `after` by itself. */
  #ack({ lane }, seq) {
    return lane !== null && !lane.asked && lane.link.send({ type: "response.ack", id: lane.id, seq });
  }

  #created(lane, frame) {
    lane.asked = false;
    lane.place.stream.start(frame);
    this.#follow(lane);
  }

  #resumed(lane) {
    const { place } = lane;
    lane.asked = false;
    if (place.old) this.#leave(place.old);
    place.old = null;
    if (place.cancelling) this.#send_cancel(place);
    place.stream.go_on();
    this.#follow(lane);
  }

  /** Asks on the new connection if this lane's was replaced while the server's answer was under way. */
  #follow(lane) {
    const { place, link } = lane;
    if (place.lane === lane && this.state === "open" && link !== this.#link) this.#ask(place);
  }

  #take(lane, frame) {
    const { place, link } = lane;
    if (lane.held) return lane.held.push(frame);
    if (frame.type === "response.done") return this.#end(place, place.stream.proof(frame.seq) ?? frame);
    const broken = place.stream.proof(frame.seq - (frame.n ?? 1));
    if (!broken) return place.stream.push(frame);
    link.send({ type: "response.cancel", id: lane.id });
    this.#end(place, broken);
  }

  /** A refusal ends its lane. An error for a lane that is over is ignored. */
  #error(lane, { type, id, fatal, ...failure }) {
    if (!lane?.asked) return (lane || id === undefined) && this.emit("error", failure);
    const { place } = lane;
    if (place.stream.response_id === null) return this.#end(place, failed(failure));
    this.#leave(lane);
    place.lane = null;
    if (place.old) return this.#go_back(place);
    if (!place.cancelling && busy_codes.has(failure.code))
      return void setTimeout(() => this.#ask_again(place), failure.retry_after_ms ?? 1_000);
    this.#give_up(place, { ...failure, message: not_resumed[failure.code] ?? failure.message });
  }

  /** The new lane was refused or lost: the stream continues on its old lane, which still works. */
  #go_back(place) {
    const lane = (place.lane = place.old);
    place.old = null;
    const held = lane.held;
    lane.held = null;
    if (place.cancelling) this.#send_cancel(place);
    for (const frame of held) if (this.#places.has(place.stream)) this.#take(lane, frame);
  }

  #give_up(place, error) {
    this.#end(place, place.cancelling ? cancelled : failed(error));
  }

  #end(place, result) {
    if (!this.#places.delete(place.stream)) return;
    for (const lane of [place.lane, place.old]) if (lane) this.#leave(lane);
    place.lane = place.old = null;
    place.stream.end(result);
  }

  /** Removes a lane. The last one that leaves a connection that the server will close closes it. */
  #leave({ id, link }) {
    link.lanes.delete(id);
    if (link.lanes.size === 0 && this.#leaving.delete(link)) link.drop(1000);
  }

  // ---- connections

  /** The page may have slept: a dead socket has told nobody, and the time of the next attempt means nothing. */
  #look_up() {
    this.retry();
    for (const link of [this.#link, ...this.#leaving]) link?.check();
  }

  async #dial() {
    clearTimeout(this.#timer);
    const link = new Link({
      frame: (frame) => this.#receive(link, frame),
      lost: (error) => (link.opened_at > 0 ? this.#lost(link, error) : this.#not_opened(link, error)),
    });
    this.#link = link;
    this.#become("connecting");
    try {
      const token = typeof this.#token === "function" ? await this.#token() : this.#token;
      link.dial(this.#WebSocket, this.#url, token ? [protocol, "bearer." + base64url(token)] : [protocol]);
    } catch (error) {
      link.fail({ code: "connection_lost", message: `The connection cannot be made: ${error?.message}.` });
    }
  }

  #receive(link, frame) {
    const lane = link.lanes.get(frame.id);
    switch (frame.type) {
      case "session.created":
        return this.#open(link, frame);
      case "session.closing":
        return this.#closing(link, frame);
      case "ping":
        return link.send({ type: "pong", ts: frame.ts });
      case "response.created":
        return lane && this.#created(lane, frame);
      case "response.loaded":
        return lane && lane.place.stream.loaded(frame);
      case "response.resumed":
        return lane && this.#resumed(lane);
      case "response.delta":
      case "response.done":
        return lane && this.#take(lane, frame);
      case "error":
        return this.#error(lane, frame);
    }
  }

  #open(link, { type, ...session }) {
    this.session = session;
    link.stay();
    this.#become("open");
    // A stream that waits for response.created on a closing connection stays there until it comes.
    for (const place of [...this.#places.values()])
      if (this.#link === link && place.lane?.link !== link && !(place.lane?.asked ?? false)) this.#ask(place);
  }

  /** The next connection is made while this one still works, and the streams move to it one by one. */
  #closing(link, { type, ...how }) {
    if (link === this.#link) {
      if (link.lanes.size > 0) this.#leaving.add(link);
      else link.drop(1000);
      this.#link = null;
      this.#failures = 0;
      const error = { code: "closing", message: "The server ends this connection; a new one is made." };
      this.#wait(Math.min(longest_leave_ms, (how.deadline_ms ?? 0) / 4), error);
    }
    this.emit("closing", how);
  }

  /** A browser does not say why a socket did not open. If the server answers HTTP, it refused the socket. */
  async #not_opened(link, error) {
    if (error === silence && (await is_alive(this.#url))) error = refused;
    if (this.#link === link) this.#lost(link, error);
  }

  /** The only place that decides what a lost socket means for the streams on it. */
  #lost(link, error) {
    const lanes = [...link.lanes.values()];
    link.lanes.clear();
    if (this.#leaving.delete(link)) return lanes.forEach((lane) => this.#lost_lane(lane, error));
    const final = final_codes.has(error.code);
    const unasked = [...this.#places.values()].filter(
      ({ lane, stream }) => !lane && (final || (link.opened_at === 0 && stream.response_id === null)),
    ); // a listener may create new streams, which are not lost
    if (link.opened_at > 0 && performance.now() - link.opened_at > steady_after_ms) this.#failures = 0;
    this.#link = null;
    if (final) this.#become("closed", { error });
    else this.#wait(Math.min(longest_retry_ms, first_retry_ms * 2 ** this.#failures++), error);
    lanes.forEach((lane) => this.#lost_lane(lane, error));
    unasked.forEach((place) => this.#give_up(place, error));
  }

  #lost_lane(lane, error) {
    const { place } = lane;
    if (place.old === lane) return void (place.old = null);
    place.lane = null;
    if (place.old) return this.#go_back(place);
    if (this.state === "closed") return this.#give_up(place, error);
    if (place.stream.response_id === null) return this.#give_up(place, fate_unknown(error));
    place.stream.become("reconnecting", error);
    this.#ask_again(place);
  }

  /** Full jitter: clients that were lost together do not come back together. */
  #wait(longest_ms, error) {
    const retry_ms = Math.round(Math.random() * longest_ms);
    this.#timer = setTimeout(() => this.#dial(), retry_ms);
    this.#become("waiting", { error, retry_ms });
  }

  #become(state, more = {}) {
    this.state = state;
    if (state === "closed") listen(this.#awake, "removeEventListener");
    this.emit("state", { state, ...more });
  }
}

/** One connection and its lanes, from the wait for the token on. Fails when the server does not answer. */
class Link {
  lanes = new Map(); // by id
  opened_at = 0;
  #on;
  #socket = null;
  #timer; // waits for session.created, then for the next ping
  #heard = false;
  #checked = false; // the next ping is waited for as check() says
  #over = false;

  constructor(on) {
    this.#on = on;
    this.#timer = setTimeout(() => this.fail(this.#socket ? silence : token_late), answer_within_ms);
  }

  dial(WebSocket, url, protocols) {
    if (this.#over) return; // the token came too late
    const socket = (this.#socket = new WebSocket(url, protocols));
    socket.onmessage = ({ data }) => this.#receive(data);
    socket.onclose = ({ code, reason }) => this.fail(close_failure(code, reason, this.opened_at > 0));
    socket.onerror = () => {}; // the close event that follows says more
  }

  /** Returns whether the frame was sent: only an open socket sends. */
  send(frame) {
    if (this.#socket?.readyState !== 1) return false;
    this.#socket.send(JSON.stringify(frame));
    return true;
  }

  /** session.created has arrived: the connection is open. */
  stay() {
    this.opened_at = performance.now();
    this.#ping();
  }

  /** Asks at once whether the server still answers. */
  check() {
    if (this.opened_at === 0 || this.#over || this.#checked) return;
    this.#ping(alive_within_ms);
    this.#checked = true;
  }

  fail(error) {
    if (this.#over) return;
    this.drop();
    this.#on.lost(error);
  }

  drop(code) {
    this.#over = true;
    clearTimeout(this.#timer);
    if (!this.#socket) return;
    this.#socket.onmessage = this.#socket.onclose = null; // a dead peer can delay the close event by minutes
    this.#socket.close(code);
  }

  #receive(data) {
    this.#heard = true;
    let frame;
    try {
      frame = JSON.parse(data);
    } catch {
      return this.fail({ code: "bad_frame", message: "The server sent something that is not JSON." });
    }
    this.#on.frame(frame);
  }

  #ping(answer_ms = ping_every_ms) {
    clearTimeout(this.#timer);
    this.#heard = this.#checked = false;
    this.send({ type: "ping", ts: Math.round(performance.now()) });
    this.#timer = setTimeout(() => {
      if (this.#heard) this.#ping();
      else this.fail({ code: "connection_lost", message: "The server has stopped answering." });
    }, answer_ms);
  }
}

/**
 * The answer to one prompt. An iterator made at any time starts with the first delta; leaving its loop early
 * cancels the stream; a stream that failed makes the loop throw a WeirError.
 * Events: `created`, `loaded` (the model that the stream waited for is there), `arrived` (a Delta, as it
 * comes), `delta` (a Delta, when it is due: with `play` evenly, else as it comes), `state` ({state, error?}), `done` (the Result).
 */
export class Stream extends Emitter {
  /** Set once the server has taken the job. */ response_id = null;
  /** Tokens received. */ seq = 0;
  deltas = [];
  /** "waiting", "running", "reconnecting", "over" */ state = "waiting";
  result = null;
  done;
  #text = "";
  #parts = null; // null: the answer is one text
  #playout = null;
  #memory = null;
  #hooks;
  #settle;
  #wake = () => {};
  #shown; // the seq that the `delta` listeners have
  #acked;
  #held = false; // the server had sent the whole window, and nothing has arrived since the ack
  #loops = new Set(); // {seq}: the seq that each loop has taken

  /** @internal */
  constructor(request, saved, { play = false, remember, onstate } = {}, hooks) {
    super();
    this.request = request;
    if (saved) this.#take_up(saved);
    this.#shown = this.#acked = this.seq;
    this.#hooks = hooks;
    this.done = new Promise((resolve) => (this.#settle = resolve));
    if (play) this.#playout = new Playout((delta) => this.#show(delta));
    if (remember !== undefined) this.#memory = new Memory(remember, this);
    if (onstate) this.on("state", onstate);
  }

  /** All text received, also before a reload. Of an answer in parts: the text of its parts of text. */
  get text() {
    return this.#text;
  }

  /** The parts received, in their order. An answer that comes in no parts is one part of text. */
  get parts() {
    return this.#parts ?? (this.#text === "" ? [] : [{ part: "text", text: this.#text, n: this.seq }]);
  }

  /** What `client.resume()` takes, or null before the server has taken the job; also this stream in JSON. */
  get saved() {
    if (this.response_id === null) return null;
    const { response_id, seq } = this;
    const said = this.#parts ? { parts: this.#parts } : { text: this.#text };
    return { response_id, seq, ...said, ...window_of(this.request) };
  }

  toJSON() {
    return this.saved;
  }

  /**
   * Asks the server to stop; `done` follows as `cancelled`, unless another end was faster. While the
   * connection is away, the server is asked once the stream is resumed. Idempotent.
   */
  cancel() {
    this.#hooks.cancel();
  }

  async *[Symbol.asyncIterator]() {
    const loop = { seq: this.#acked };
    this.#loops.add(loop);
    try {
      for (let next = 0; ;) {
        while (next < this.deltas.length) {
          yield this.deltas[next];
          loop.seq = Math.max(loop.seq, this.deltas[next++].seq);
          this.#ack();
        }
        if (this.result) break;
        await new Promise((resolve) => (this.#wake = both(this.#wake, resolve)));
      }
      if (this.result.error) throw new WeirError(this.result.error);
    } finally {
      this.#loops.delete(loop);
      this.cancel();
    }
  }

  /** @internal undefined if `seq` is the last token received, else the result that says what is wrong. */
  proof(seq) {
    if (seq === this.seq) return undefined;
    return seq > this.seq
      ? failed({ code: "gap", message: `Tokens ${this.seq + 1} to ${seq} never arrived.` })
      : failed({ code: "repeat", message: `The token after ${seq} arrived twice.` });
  }

  /** @internal */
  start(frame) {
    this.response_id = frame.response_id;
    this.#memory?.write();
    this.become("running");
    this.emit("created", frame);
  }

  /** @internal The model that it waited for is there. */
  loaded({ type, id, ...how }) {
    this.emit("loaded", how);
  }

  /** @internal The stream was resumed after token `seq`, up to which all now counts as acknowledged. */
  go_on() {
    this.#acked = this.seq;
    this.#held = false;
    if (this.state !== "running") this.become("running");
    this.#ack();
  }

  /** @internal */
  push({ type, id, delta: whole, part, call, parts, n = 1, ...more }) {
    this.seq = more.seq;
    const pieces = part ? [{ part, delta: whole, call }] : parts;
    const text = pieces ? text_of(pieces, "delta") : whole;
    this.#text += text;
    const delta = { text, n, at: performance.now(), held: this.#held, ...more };
    if (pieces) delta.parts = pieces.map(({ delta: text, ...piece }) => ({ ...piece, text }));
    if (pieces) this.#collect(delta);
    this.#held = false;
    this.#memory?.write_soon();
    this.emit("arrived", delta);
    if (this.#playout) this.#playout.push(delta);
    else this.#show(delta);
  }

  #take_up({ response_id, seq, parts = null, text = text_of(parts ?? [], "text") }) {
    Object.assign(this, { response_id, seq });
    this.#parts = parts && structuredClone(parts);
    this.#text = text;
  }

  #collect({ parts, n }) {
    this.#parts ??= [];
    parts.forEach((piece, i) => add_part(this.#parts, { ...piece, n: i === 0 ? n : 0 }));
  }

  /** @internal */
  end({ type, id, response_id, seq, ...result }) {
    this.#playout?.end();
    this.result = result;
    if (result.error === closed) this.#memory?.write();
    else this.#memory?.forget();
    this.become("over", result.error);
    this.emit("done", result);
    this.#settle(result);
    this.#news();
  }

  /** @internal */
  become(state, error) {
    this.state = state;
    this.emit("state", error ? { state, error } : { state });
  }

  #show(delta) {
    this.deltas.push(delta);
    this.emit("delta", delta);
    this.#shown = delta.seq;
    this.#ack();
    this.#news();
  }

  /** Acknowledges what the listeners and all loops have taken, at least half a window at a time. */
  #ack() {
    const { window } = this.request;
    if (!window || this.result) return;
    const taken = Math.min(this.#shown, ...[...this.#loops].map(({ seq }) => seq));
    if (taken - this.#acked < Math.ceil(window / 2) || !this.#hooks.ack(taken)) return;
    this.#held ||= this.seq - this.#acked >= window;
    this.#acked = taken;
  }

  #news() {
    const wake = this.#wake;
    this.#wake = () => {};
    wake();
  }
}

const longest_ms = 250;
const margin_ms = 20; // part of longest_ms: for the time until the next frame is drawn
const timer_ms = 5; // part of longest_ms: for a timer that is late
const remembered_deltas = 64;

/** The time, timers and drawn frames of the environment; without `frame` where nothing is drawn. */
const real_clock = {
  now: () => performance.now(),
  wait: (ms, call) => {
    const timer = setTimeout(call, ms);
    return () => clearTimeout(timer);
  },
  frame:
    typeof requestAnimationFrame === "function"
      ? (call) => {
          const frame = requestAnimationFrame(call);
          return () => cancelAnimationFrame(frame);
        }
      : undefined,
};

/**
 * Shows deltas evenly: a buffer between their arrival and the eye.
 *
 * 1. The first delta is shown at once; none is shown later than 250 ms after it arrived.
 * 2. Within these limits deltas are shown at the mean rate of the last 64 that arrived, delayed just enough
 *    that 95 in 100 of those would have been in time.
 * 3. Elapsed time is measured, not frames: slow frames show more at once, but the delay does not grow.
 * 4. A hidden page is not paced, and at the end all that is left is shown.
 */
export class Playout {
  #show;
  #clock;
  #queue = []; // arrived, not shown
  #recent = []; // the last that arrived: {at, seq}
  #gap = 0; // mean time between the tokens of #recent, ms
  #slack = 0; // ms: at that rate 95 in 100 of #recent are at most this late
  #shown_at = null; // when the last one shown was due
  #delay = 0; // ms from the arrival of the last one shown to #shown_at
  #stop_waiting = () => {};
  #look = () => this.#play();

  /** `show` is called once with each delta, in order. */
  constructor(show, clock = real_clock) {
    this.#show = show;
    this.#clock = clock;
    globalThis.document?.addEventListener("visibilitychange", this.#look);
  }

  push(delta) {
    this.#learn(delta);
    this.#queue.push(delta);
    this.#play();
  }

  /** Shows at once what is left. */
  end() {
    this.#stop_waiting();
    globalThis.document?.removeEventListener("visibilitychange", this.#look);
    this.#flush();
  }

  #play() {
    this.#stop_waiting();
    if (globalThis.document?.hidden) this.#flush();
    const now = this.#clock.now();
    while (this.#queue.length > 0) {
      const { at } = this.#queue[0];
      const due = this.#due();
      if (due > now) return this.#wait(due - now, at + longest_ms - timer_ms - now);
      this.#shown_at = Math.max(due, at);
      this.#delay = this.#shown_at - at;
      this.#show(this.#queue.shift());
    }
  }

  /** Frames are rare or missing where nothing of the page is visible: a timer then calls in time. */
  #wait(due_in, late_in) {
    const { frame, wait } = this.#clock;
    const look = this.#look;
    this.#stop_waiting = frame ? both(frame(look), wait(late_in, look)) : wait(due_in, look);
  }

  /** When the head of the queue is to be shown, such that everything behind it can still be in time. */
  #due() {
    if (this.#shown_at === null) return this.#queue[0].at;
    const steer = this.#delay < 0.9 * this.#slack ? 1.15 : this.#delay > 1.1 * this.#slack ? 0.85 : 1;
    let wait = this.#gap * this.#queue[0].n * steer;
    const latest = longest_ms - margin_ms - this.#shown_at;
    this.#queue.forEach(({ at }, i) => (wait = Math.min(wait, (at + latest) / (i + 1))));
    return this.#shown_at + wait;
  }

  #learn({ at, seq }) {
    this.#recent.push({ at, seq });
    if (this.#recent.length > remembered_deltas) this.#recent.shift();
    const first = this.#recent[0];
    this.#gap = (at - first.at) / Math.max(1, seq - first.seq);
    const late = this.#recent
      .map((delta) => delta.at - first.at - (delta.seq - first.seq) * this.#gap)
      .sort((a, b) => a - b);
    this.#slack = Math.min(late[Math.floor(0.95 * (late.length - 1))] - late[0], 0.8 * longest_ms);
  }

  #flush() {
    for (const delta of this.#queue.splice(0)) this.#show(delta);
  }
}

/** What `remember` has kept under this key for `client.resume()`, or null. */
export function remembered(key) {
  return JSON.parse(globalThis.sessionStorage?.getItem(key) ?? "null");
}

/** Keeps in sessionStorage what resumes a stream, as long as there is something to resume. */
class Memory {
  #key;
  #stream;
  #timer = 0;

  constructor(key, stream) {
    if (!globalThis.sessionStorage) throw new TypeError("`remember` needs sessionStorage, and there is none.");
    this.#key = key;
    this.#stream = stream;
  }

  write_soon() {
    this.#timer ||= setTimeout(() => this.write(), remember_every_ms);
  }

  /** Where the text does not fit, it is left out: a resume after token 0 brings all of it. */
  write() {
    this.#clear();
    const { saved } = this.#stream;
    if (!saved) return;
    try {
      sessionStorage.setItem(this.#key, JSON.stringify(saved));
    } catch {
      sessionStorage.removeItem(this.#key); // makes room
      const { text, parts, ...rest } = saved;
      sessionStorage.setItem(this.#key, JSON.stringify({ ...rest, seq: 0 }));
    }
  }

  forget() {
    this.#clear();
    sessionStorage.removeItem(this.#key);
  }

  #clear() {
    clearTimeout(this.#timer);
    this.#timer = 0;
  }
}

/**
 * Adds a piece of an answer to the list of its parts. A piece goes on with the part before it where both are
 * of one kind and, of calls, of one call. `piece`: one of a Delta's `parts`, with the number of its tokens.
 */
export function add_part(parts, { part, text, call, n = 0 }) {
  const last = parts.at(-1);
  if (last?.part === part && last.call?.index === call?.index) {
    last.text += text;
    last.n += n;
  } else if (text !== "" || part !== "text") {
    parts.push(call ? { part, text, n, call: { ...call } } : { part, text, n });
  }
}

function text_of(parts, member) {
  return parts.map((one) => (one.part === "text" ? one[member] : "")).join("");
}

/** What a `for await` over a stream throws. */
export class WeirError extends Error {
  constructor(failure) {
    super(failure.message);
    Object.assign(this, failure);
    this.name = "WeirError";
  }
}

const no_websocket =
  "This environment has no WebSocket of its own. Pass one: npm install ws, then " +
  'connect(url, { WebSocket: (await import("ws")).WebSocket }).';
const silence = { code: "connection_lost", message: "The server is not answering." };
const token_late = { code: "connection_lost", message: "The token for the connection did not come in time." };
const refused = {
  code: "connection_lost",
  message:
    "The server answers but does not open the connection. Likely causes: its option --allow-origin does " +
    "not name this page's origin, or the key is missing or wrong.",
};
const closed = { code: "closed", message: "The client is closed." };
const cancelled = { status: "cancelled", finish_reason: "cancel" };
const final_codes = new Set(["bad_key", "forbidden"]);
const busy_codes = new Set(["rate_limited", "overloaded"]); // a resume that is refused with one is sent again
const not_resumed = {
  unknown_type: "The connection was lost, and this server cannot resume a stream.",
  resume_expired: "The connection was lost, and the server no longer keeps this response.",
  not_found: "The connection was lost, and the server does not know this response any more.",
  invalid_cursor: "The stream cannot be resumed: the server has fewer tokens of it than have arrived here.",
};

/** @returns {Failure} of a request that was sent and never answered */
function fate_unknown({ code, message }) {
  const why = "Whether the server has taken the request is not known, so it is not sent again.";
  return { code, message: `${message} ${why}` };
}

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
  if (!was_open && !reason) return silence;
  return { code: "connection_lost", message: reason || "The connection to the server was lost." };
}

/** Whether a weir server answers. Any page may make this request. */
async function is_alive(url) {
  try {
    const health = new URL("../health/live", url.replace(/^ws/, "http"));
    const signal = AbortSignal.timeout(alive_within_ms);
    const answer = await fetch(health, { mode: "no-cors", cache: "no-store", signal });
    await answer.body?.cancel();
    return true;
  } catch {
    return false;
  }
}

/** @returns {Result} */
function failed(error) {
  return { status: "failed", finish_reason: "error", error };
}

/** Calls `awake` when the page is shown or seen again, or the device is online again; or no longer does. */
function listen(awake, how) {
  globalThis.document?.[how]("visibilitychange", awake);
  for (const event of ["pageshow", "online"]) globalThis[how]?.(event, awake);
}

function window_of({ window }) {
  return window === undefined ? {} : { window };
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
