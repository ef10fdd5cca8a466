// weir.d.ts — the types of weir.js. What each part does is explained in docs/client.md.

export interface Failure {
  code: string;
  /** For people. */ message: string;
  /** The field that is wrong. */ param?: string;
  retry_after_ms?: number;
}

export interface Message {
  role: string;
  content: string | null;
  [field: string]: unknown;
}

/** Every field goes to the server as it is; docs/wire.md has all of them. */
export interface Request {
  input: string | Message[] | number[];
  model?: string;
  /** The name of a preset of the server, which sets the sampling fields that are not here. */
  preset?: string;
  max_tokens?: number;
  temperature?: number;
  top_p?: number;
  top_k?: number;
  min_p?: number;
  repetition_penalty?: number;
  frequency_penalty?: number;
  presence_penalty?: number;
  /** The other fields of docs/sampling.md. */
  repetition_range?: number;
  repetition_decay?: number;
  disallow_tokens?: number[];
  allowed_token_ids?: number[];
  bad_words?: (string | number[])[];
  no_repeat_ngram_size?: number;
  dry_multiplier?: number;
  dry_base?: number;
  dry_allowed_length?: number;
  dry_range?: number;
  dry_sequence_breakers?: string[];
  top_n_sigma?: number;
  dynatemp_range?: number;
  dynatemp_exponent?: number;
  smoothing_factor?: number;
  smoothing_curve?: number;
  temperature_last?: boolean;
  top_a?: number;
  typical_p?: number;
  tfs?: number;
  mirostat_mode?: 0 | 1 | 2;
  mirostat_tau?: number;
  mirostat_eta?: number;
  xtc_probability?: number;
  xtc_threshold?: number;
  seed?: number;
  stop?: string | string[];
  /** The stop string that ends the answer is a part of it. */
  include_stop_str_in_output?: boolean;
  /** The prompt's last token is drawn again, from the tokens that begin with it. */
  token_healing?: boolean;
  /** Texts that the answer does not have, in letters of any case. */
  banned_strings?: string | string[];
  ignore_eos?: boolean;
  /** "shift": older tokens leave a full context, and the answer goes on. Default: it ends with `length`. */
  context_overflow?: "end" | "shift";
  timing?: boolean;
  /** How many of the likeliest tokens come beside each token's own logprob, 0 to 20. */
  logprobs?: boolean | number;
  on_disconnect?: "continue" | "cancel";
  /** Tokens that the server sends beyond those that were taken here. */ window?: number;
  on_lag?: "buffer" | "pause";
  /** separate: as parts of its own, as with `tools`. */ reasoning?: "text" | "separate";
  tools?: unknown[];
  [field: string]: unknown;
}

export type PartKind = "text" | "reasoning" | "arguments";
/** What a call is of. `id` and `name` come with its first piece. */
export interface Call {
  index: number;
  id?: string;
  name?: string;
  type?: "custom";
}
export interface Piece {
  part: PartKind;
  text: string;
  /** Of arguments. */ call?: Call;
}
export interface Part extends Piece {
  /** Tokens. */ n: number;
}

export interface Delta {
  /** Of an answer in parts: that of its parts of text. */ text: string;
  /** Of a request with `tools` or `reasoning: "separate"`. */ parts?: Piece[];
  /** Tokens received so far. */ seq: number;
  /** Tokens in this delta. */ n: number;
  /** µs from the job's start to sampling, with `timing`. */ t?: number;
  /** When it arrived, on performance.now()'s clock. */ at: number;
  /** The server had sent all that `window` allows, and waited for this client. */ held: boolean;
  token_ids?: number[];
  /** One for each token of this delta, with `logprobs`. */ logprobs?: Logprob[];
}

/** A token by itself. */
export interface Logprob {
  id: number;
  token: string;
  /** Natural logarithm of its probability, before penalties, temperature and cuts. */ logprob: number;
  /** Where they are not UTF-8 by themselves. */ bytes?: number[];
  /** The likeliest tokens, the best first. */ top?: Logprob[];
}

export interface Result {
  status: "completed" | "incomplete" | "cancelled" | "failed";
  finish_reason: string;
  usage?: {
    input_tokens: number;
    output_tokens: number;
    cached_tokens?: number;
    context_shifts?: number;
    reasoning_tokens?: number;
  };
  timing?: { [name: string]: number };
  error?: Failure;
}

export interface Session {
  session_id: string;
  server: string;
  models: string[];
  limits: { [name: string]: number };
}

/** What `Client.resume` takes. */
export interface Saved {
  response_id: string;
  seq: number;
  text?: string;
  /** In place of `text`, of an answer in parts. */ parts?: Part[];
  window?: number;
}

/** waiting: for the next attempt. */
export type State = "connecting" | "open" | "waiting" | "closed";
export interface StateChange {
  state: State;
  error?: Failure;
  /** Until the next attempt. */ retry_ms?: number;
}

/** waiting: for the connection or the server; reconnecting: it goes on once the connection is back. */
export type StreamState = "waiting" | "running" | "reconnecting" | "over";
export interface StreamStateChange {
  state: StreamState;
  error?: Failure;
}

export interface ConnectOptions {
  /** An API key or a browser token, or what gives one; asked anew before each connection. */
  token?: string | null | (() => string | null | Promise<string | null>);
  /** Where the environment has none of its own. */ WebSocket?: unknown;
}

export interface StreamOptions {
  /** Shows tokens evenly: `delta`, `deltas` and loops have them when they are due. */ play?: boolean;
  /** The name in sessionStorage under which `saved` is kept while the stream runs. */ remember?: string;
  /** A listener of `state`. */ onstate?: (change: StreamStateChange) => void;
}

export interface ClientEvents {
  state: StateChange;
  error: Failure;
  closing: { reason: string; deadline_ms: number };
}

export interface StreamEvents {
  created: {
    response_id: string;
    model: string;
    queue_position?: number;
    /** The stream waits for its model to be loaded; `loaded` follows. */ loading?: boolean;
    ignored?: string[];
    warnings?: { param: string; message: string }[];
  };
  loaded: {
    response_id: string;
    queue_position?: number;
    warnings?: { param: string; message: string }[];
  };
  arrived: Delta;
  delta: Delta;
  state: StreamStateChange;
  done: Result;
}

/** Connects, and stays connected until `close()`. `url`: of the server, or of its socket. */
export function connect(url: string | URL, options?: ConnectOptions): Client;

export class Client {
  constructor(url: string | URL, options?: ConnectOptions);
  state: State;
  session: Session | null;
  /** Returns a function that ends the listening. */
  on<Name extends keyof ClientEvents>(name: Name, listener: (event: ClientEvents[Name]) => void): () => void;
  create(request: Request, options?: StreamOptions): Stream;
  resume(saved: Saved, options?: StreamOptions): Stream;
  retry(): void;
  close(): void;
}

export class Stream implements AsyncIterable<Delta> {
  private constructor();
  request: Partial<Request>;
  response_id: string | null;
  seq: number;
  deltas: Delta[];
  state: StreamState;
  result: Result | null;
  done: Promise<Result>;
  get text(): string;
  get parts(): Part[];
  get saved(): Saved | null;
  toJSON(): Saved | null;
  /** Returns a function that ends the listening. */
  on<Name extends keyof StreamEvents>(name: Name, listener: (event: StreamEvents[Name]) => void): () => void;
  cancel(): void;
  [Symbol.asyncIterator](): AsyncIterator<Delta>;
}

export interface Clock {
  now(): number;
  /** Returns a function that takes it back. */ wait(ms: number, call: () => void): () => void;
  /** Before the next frame is drawn; left out where nothing is. */ frame?(call: () => void): () => void;
}

export class Playout<Shown extends { at: number; seq: number; n: number } = Delta> {
  constructor(show: (delta: Shown) => void, clock?: Clock);
  push(delta: Shown): void;
  end(): void;
}

/** Adds a piece of an answer to the list of its parts. */
export function add_part(parts: Part[], piece: Piece & { n?: number }): void;

/** What `remember` has kept under this key, or null. */
export function remembered(key: string): Saved | null;

export class WeirError extends Error implements Failure {
  constructor(failure: Failure);
  code: string;
  param?: string;
  retry_after_ms?: number;
}
