// tools.js — what the model may call where the reader has switched tools on: a calculator and a clock. Both
// run in this page, and nothing leaves it.
import { calculate } from "./calculator.js";

const longest_name = 60; // characters of what the model wrote, in an error
const object = (properties, required) => ({ type: "object", properties, required });
const text = (description) => ({ type: "string", description });

/** By name: what the model is told, and what runs. `run` throws an Error with a sentence. */
const known = {
  calculator: {
    description: "Calculates the exact value of an arithmetic expression.",
    parameters: object(
      { expression: text("such as (128 + 57) * 2^3; functions such as sqrt(2), min(1, 2); pi, e") },
      ["expression"],
    ),
    run: ({ expression }) => calculate(as_text("expression", expression)),
  },
  clock: {
    description: "Tells the date and the time of day.",
    parameters: object({ time_zone: text("such as Europe/Berlin; left out: the reader's own") }, []),
    run: ({ time_zone }) => time_in(time_zone === undefined ? undefined : as_text("time_zone", time_zone)),
  },
};

/** As a request has them. */
export const tools = Object.entries(known).map(([name, { description, parameters }]) => ({
  type: "function",
  function: { name, description, parameters },
}));

/**
 * Runs a call. What is wrong with it is its result, so that the model can do better.
 * @param {string} name @param {string} written its arguments, as the model wrote them
 * @returns {{result: string, failed: boolean}}
 */
export function run_call(name, written) {
  try {
    if (!Object.hasOwn(known, name)) throw new Error(`There is no tool of the name ${shortened(name)}.`);
    return { result: known[name].run(arguments_of(written)), failed: false };
  } catch ({ message }) {
    return { result: `Error: ${message}`, failed: true };
  }
}

function arguments_of(written) {
  let given;
  try {
    given = JSON.parse(written.trim() || "{}");
  } catch {
    throw new Error("The arguments are not JSON.");
  }
  if (given === null || typeof given !== "object" || Array.isArray(given))
    throw new Error("The arguments are not an object.");
  return given;
}

function shortened(text) {
  return text.length > longest_name ? `${text.slice(0, longest_name)}…` : text;
}

function as_text(name, value) {
  if (typeof value === "number") return String(value);
  if (typeof value !== "string") throw new Error(`${name} must be a string.`);
  return value;
}

function time_in(timeZone) {
  const how = { dateStyle: "full", timeStyle: "long", timeZone };
  let format;
  try {
    format = new Intl.DateTimeFormat("en-GB", how);
  } catch {
    throw new Error(`There is no time zone of the name ${shortened(timeZone)}.`);
  }
  return `${format.format(new Date())} (${format.resolvedOptions().timeZone})`;
}
