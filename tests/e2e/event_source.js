// event_source.js — reads server-sent events from the answer to any request, as the HTML standard says
// (section 9.2.6). The browsers' EventSource reads only answers to its own requests.

/** Yields {type, data, id} for each event and {comment} for each comment, as they arrive. `id` is the last
 * that an event had.
 * @param {ReadableStream<Uint8Array>} body */
export async function* events_of(body) {
  let type = "";
  let data = [];
  let id = "";
  for await (const line of lines_of(body)) {
    if (line === "") {
      if (data.length > 0) yield { type: type || "message", data: data.join("\n"), id };
      type = "";
      data = [];
    } else if (line.startsWith(":")) {
      yield { comment: line.slice(1).trim() };
    } else {
      const [, field, value] = /^([^:]*)(?:: ?(.*))?$/.exec(line);
      if (field === "event") type = value ?? "";
      if (field === "id") id = value ?? "";
      if (field === "data") data.push(value ?? "");
    }
  }
}

async function* lines_of(body) {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of body) {
    rest += decoder.decode(bytes, { stream: true });
    const lines = rest.split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop();
    yield* lines;
  }
}
