// said.js — the messages that the turns of a conversation are to the server.
import { text_of } from "./parts.js";

/**
 * @param {import("./history.js").Turn[]} turns @param {import("./history.js").Turn} [writing] the turn whose
 *   answer is asked for: its thoughts go back to the model, those of other turns do not
 */
export function messages_of(turns, writing) {
  return turns.flatMap((turn) => {
    if (turn.failed && turn.text === "") return [];
    const steps = steps_of(turn.parts ?? []);
    if (steps.length === 0) return turn === writing ? [] : [{ role: turn.role, content: turn.text }];
    return steps.flatMap((step) => messages_of_step(step, turn === writing));
  });
}

function steps_of(parts) {
  const steps = [];
  for (const part of parts) (steps[part.step] ??= []).push(part);
  return steps.filter(Boolean);
}

/** A call that was not run is left out: a template wants a result for each. */
function messages_of_step(parts, with_thoughts) {
  const calls = parts.filter(({ result }) => result !== undefined);
  const message = { role: "assistant", content: text_of(parts) };
  const thoughts = parts.filter(({ part }) => part === "reasoning").map(({ text }) => text);
  if (with_thoughts && thoughts.length > 0) message.reasoning_content = thoughts.join("\n\n");
  if (calls.length > 0) message.tool_calls = calls.map(tool_call);
  const results = calls.map(({ call, result }) => ({ role: "tool", tool_call_id: call.id, content: result }));
  return [message, ...results];
}

function tool_call({ call: { id, name }, text }) {
  return { id, type: "function", function: { name, arguments: as_object(text) } };
}

/** Templates want an object; what is none was the model's mistake, and the result says so. */
function as_object(text) {
  try {
    const value = JSON.parse(text);
    if (value !== null && typeof value === "object" && !Array.isArray(value)) return text;
  } catch {
    // It is no JSON.
  }
  return "{}";
}
