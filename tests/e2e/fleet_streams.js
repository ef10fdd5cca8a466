// fleet_streams.js — answers of a server as its clients read them: lanes of weir.v1, events over HTTP.
import { WebSocket } from "ws";

import { events_of } from "./event_source.js";

/** A lane of weir.v1: its text so far, and `done`, which gives its last frame. */
export function lane(url, message) {
  const socket = new WebSocket(`${url.replace("http", "ws")}/v1/stream`, ["weir.v1"]);
  const stream = { text: "", seq: 0, id: undefined, logprobs: [], began: false, over: false };
  stream.done = new Promise((resolve, reject) => {
    socket.on("message", (data) => {
      const frame = JSON.parse(data);
      if (frame.type === "session.created") socket.send(JSON.stringify({ id: "lane", ...message }));
      if (frame.type === "session.closing") stream.closing = frame;
      if (frame.type === "response.created") stream.began = true;
      if (frame.type === "response.resumed") {
        stream.resumed = frame;
        stream.began = true;
        stream.seq = frame.after;
      }
      stream.id ??= frame.response_id;
      if (frame.type === "response.delta") {
        stream.text += frame.delta;
        stream.seq = frame.seq;
        stream.logprobs.push(...(frame.logprobs ?? []));
      }
      if (frame.type !== "response.done" && frame.type !== "error") return;
      stream.over = true;
      resolve(frame);
      socket.close();
    });
    socket.on("close", (code) => {
      stream.code = code;
      reject(new Error(`the connection was lost: ${code}`));
    });
    socket.on("error", reject);
  });
  stream.done.catch(() => {});
  return stream;
}

/** An answer of events over HTTP, whatever its protocol: all that was said so far, the text of each choice,
 * the last event's id, and `done`, which fails where the answer ends with an error (`error`). */
export function events(url, how = {}) {
  const stream = { all: [], texts: [], id: undefined, last: undefined, number: -1 };
  stream.began = stream.over = false;
  const add = (index, text) => (stream.texts[index] = (stream.texts[index] ?? "") + text);
  const take = (said) => {
    if (said.error || said.type === "error") {
      stream.error = said.error ?? said;
      throw new Error(JSON.stringify(stream.error));
    }
    stream.all.push(said);
    stream.id ??= said.id ?? said.response?.id ?? said.message?.id;
    stream.number = said.sequence_number ?? stream.number;
    for (const { index, text, delta } of said.choices ?? []) add(index, text ?? delta?.content ?? "");
    if (said.type === "response.output_text.delta") add(0, said.delta);
    stream.ended = said.type;
  };
  stream.done = (async () => {
    const answer = await fetch(url, how);
    if (answer.status !== 200) throw new Error(`${answer.status}: ${await answer.text()}`);
    stream.began = true;
    for await (const { data, id } of events_of(answer.body)) {
      if (data === undefined || data === "[DONE]") continue;
      take(JSON.parse(data));
      if (id) stream.last = id;
    }
    stream.over = true;
    return stream;
  })();
  stream.done.catch(() => {});
  return stream;
}

/** The events of what is asked for with POST. */
export const post = (url, path, body) =>
  events(`${url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", "anthropic-version": "2023-06-01" },
    body: JSON.stringify({ stream: true, ...body }),
  });

/** The events of an answer behind the event that was the last one, at any gateway. */
export const followed = (url, { id, last }) =>
  Object.assign(events(`${url}/v1/jobs/${id}/events`, last ? { headers: { "last-event-id": last } } : {}), {
    id,
    last,
  });

/** The events of a response behind the one with that number. */
export const followed_response = (url, { id, number }) =>
  Object.assign(events(`${url}/v1/responses/${id}?stream=true&starting_after=${number}`), { id, number });

/** A lane that goes on behind another one's last token. */
export const resumed_lane = (url, { id, seq }) =>
  lane(url, { type: "response.resume", response_id: id, after: seq });

/** What each choice of an answer of OpenAI's protocols came to, however it was cut into events. */
export function whole_choices(...streams) {
  const out = [];
  for (const { choices } of streams.flatMap(({ all }) => all))
    for (const { index, text, delta, finish_reason } of choices ?? []) {
      const to = (out[index] ??= { text: "", reasoning: "", calls: [], reason: null });
      to.text += text ?? delta?.content ?? "";
      to.reasoning += delta?.reasoning_content ?? "";
      for (const call of delta?.tool_calls ?? []) {
        const known = (to.calls[call.index] ??= { name: "", arguments: "" });
        known.name += call.function?.name ?? "";
        known.arguments += call.function?.arguments ?? "";
      }
      to.reason = finish_reason ?? to.reason;
    }
  return out;
}

/** Reads an answer to its end, as a client that knows several gateways: where a connection ends before the
 * answer does, `begin` goes on at the next one behind `so_far`. All streams; the last one's `end` is its
 * `done`. */
export async function read_through(urls, begin) {
  const parts = [];
  for (let tries = 0; ; tries++) {
    const part = begin(urls[tries % urls.length], parts.at(-1));
    try {
      part.end = await part.done;
      return [...parts, part];
    } catch (e) {
      if (part.began) parts.push(part);
      else if (tries > 1000) throw e;
      else await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
