// words.js — numbers, ends and failures of a stream in plain words.

/** @param {number} value */
export function ms(value) {
  if (value >= 10_000) return `${(value / 1000).toFixed(1)} s`;
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
}

/** @param {number} value */
export function per_second(value) {
  return value < 10 ? value.toFixed(1) : Math.round(value).toLocaleString("en");
}

/** @param {number} value of bytes */
export function bytes_in_words(value) {
  const [size, unit] = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]].find(([least]) => value >= least) ?? [1, "B"];
  return `${(value / size).toFixed(value / size < 100 && size > 1 ? 1 : 0)} ${unit}`;
}

/** A time of seconds to days, in one unit. @param {number} seconds */
export function how_long(seconds) {
  const [size, unit] = [[86_400, "days"], [3600, "h"], [60, "min"]].find(([n]) => seconds >= 2 * n) ?? [1, "s"];
  return `${Math.floor(seconds / size)} ${unit}`;
}

/** Why a stream ended. */
export function end_in_words({ finish_reason, error }, { max_tokens } = {}) {
  if (error) return failure_in_words(error);
  const words = {
    stop: "finished",
    length: `reached its limit of ${max_tokens ? `${max_tokens} ` : ""}tokens`,
    cancel: "stopped",
    timeout: "out of time",
    repetition: "ended, because it went round in circles",
    banned: "ended, because all ways on were banned",
  };
  return words[finish_reason] ?? finish_reason;
}

const busy = new Set(["rate_limited", "overloaded", "too_many_jobs", "model_loading", "model_line_full",
  "other_model_loading"]);

function failure_in_words({ code, message, retry_after_ms }) {
  const when = retry_after_ms ? `in ${Math.ceil(retry_after_ms / 1000)} s` : "in a moment";
  if (busy.has(code)) return `The server has too much to do right now. Try again ${when}.`;
  if (code === "gap" || code === "repeat")
    return `${message} The text is not shown further, because it would be wrong.`;
  return message;
}

/** How soon and how fast the server made the tokens, which may be much faster than they are shown. */
export function speed_in_words({ usage, timing }) {
  const words = [];
  if (timing?.ttft_ms > 0) words.push(`first after ${ms(timing.ttft_ms)}`);
  const gaps = (usage?.output_tokens ?? 0) - 1;
  if (gaps > 0 && timing?.decode_ms > 0)
    words.push(`made at ${per_second((gaps * 1000) / timing.decode_ms)} tokens/s`);
  return words;
}
