// kit.js — a browser for the tests of the page, and functions for the parts of the page. SHOTS names a folder
// for pictures. Without Chromium (CHROMIUM, else Debian's, without windows where it is there), or without the
// binary that WEIR_BIN names, tests that need it are skipped with the reason; where CI is true, they fail.
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { start_fake } from "../fake_server.js";
import { start_real } from "../real_server.js";

const browsers = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"];
const browser_path = process.env.CHROMIUM ?? browsers.find(existsSync) ?? browsers.at(-1);
const required = process.env.CI === "true";

/** A reason to skip, or false; with CI=true the test runs, and fails for the same reason. */
function unless(there, reason) {
  return there || required ? false : reason;
}

export const no_browser = unless(existsSync(browser_path), `${browser_path} is not there`);
export const no_binary = unless(process.env.WEIR_BIN, "WEIR_BIN does not name a binary");
export const no_real = no_browser || no_binary;
export const sizes = { wide: { width: 1280, height: 860 }, phone: { width: 390, height: 844 } };
export const schemes = ["light", "dark"];
/** Each size and each scheme once. Tests of all four pairs use `sizes` and `schemes`. */
export const looks = {
  "wide, light": { viewport: sizes.wide, colorScheme: "light" },
  "phone, dark": { viewport: sizes.phone, colorScheme: "dark" },
};

let browser;
before(async () => {
  if (no_browser) return;
  browser = await chromium.launch({
    executablePath: browser_path,
    args: ["--no-sandbox", "--disable-background-networking"],
  });
});
after(() => browser?.close());

/** A scripted server for one test. */
export async function fake(t, options) {
  const server = await start_fake(options);
  t.after(() => server.stop());
  return server;
}

/** The binary for one test. */
export async function real(t, options) {
  const server = await start_real(options);
  t.after(() => server.stop());
  return server;
}

/**
 * The binary for one test, with a model that answers from a script (docs/debugging.md), and a template that
 * knows calls and reasoning.
 * @param {{when?: string, say: string}[]} script
 */
export async function scripted(t, script, { template = qwen_like, rate = 0 } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "weir-script-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "script.jsonl");
  writeFileSync(file, script.map((line) => JSON.stringify(line)).join("\n"));
  const device = `sim:rate=${rate},script=${file}`;
  return real(t, { args: ["--device", device, ...(template ? ["--chat-template", template] : [])] });
}
const qwen_like = fileURLToPath(new URL("../qwen_like.jinja", import.meta.url));

/** A call as that template has it. */
export const call = (name, input) =>
  `<tool_call>\n${JSON.stringify({ name, arguments: input })}\n</tool_call>`;

export async function open_context(t, look = {}) {
  const context = await browser.newContext({ viewport: sizes.wide, ...look });
  t.after(() => context.close());
  return context;
}

const lost = /ERR_(CONNECTION_|SOCKET_NOT_CONNECTED|INCOMPLETE)|WebSocket (connection|is closed)/;
const refused = /status of (40[139]|422|503)/;

/** Opens the page. Errors of the page fail the test, except those that a lost server causes. */
export async function open_page(t, server, look) {
  const page = await (await open_context(t, look)).newPage();
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => {
    const text = message.text();
    if (message.type() === "error" && !lost.test(text) && !refused.test(text)) complaints.push(text);
  });
  t.after(() => assert.deepEqual(complaints, []));
  await page.goto(server.url);
  return page;
}

/** The same, once it is connected. */
export async function visit(t, server, look) {
  const page = await open_page(t, server, look);
  await connected(page);
  return page;
}

export const connected = (page) => page.getByText("connected", { exact: true }).waitFor();
export const button = (page, name) => page.getByRole("button", { name, exact: typeof name === "string" });
export const toggle = (page, name) => page.getByRole("switch", { name, exact: true });
export const view = (page, name) => page.getByRole("radio", { name }).check();

/** @param {Record<string, string>} values by label */
export async function set(page, values) {
  await button(page, "Settings").click();
  for (const [label, value] of Object.entries(values)) {
    // The accessible name of a choice also has the text of its options.
    const field = page.getByRole("dialog").getByLabel(new RegExp(`^${label}`));
    await field.evaluate((it) => it.closest("details")?.setAttribute("open", ""));
    const choice = await field.evaluate((it) => it.tagName === "SELECT");
    await (choice ? field.selectOption(value) : field.fill(value));
  }
  await button(page, "Done").click();
}

export async function send(page, text) {
  await page.getByLabel("Prompt", { exact: true }).fill(text);
  await button(page, "Send").click();
}

export const turns = (page, role) => page.locator(`.turn[data-role=${role}]`);
export const body = (page) => turns(page, "assistant").last().locator(".body");
export const state = (page) => turns(page, "assistant").last().locator(".state");

/** Waits for the end of the answer under way. */
export async function answered(page) {
  await page.locator("#send").waitFor();
  await page.waitForFunction(() => !document.querySelector(".turn.writing"));
}

/** Waits until the last answer has some text. */
export const has_text = (page) =>
  page.waitForFunction(() => document.querySelector(".turn:last-child .body")?.textContent.length > 0);

/** Waits until there is more text than before. */
export async function grows(page, selector = ".turn:last-child .body") {
  const length = (one) => document.querySelector(one)?.textContent.length ?? 0;
  const before = await page.evaluate(length, selector);
  await page.waitForFunction(
    ([one, n]) => document.querySelector(one)?.textContent.length > n,
    [selector, before],
  );
}

/** On a phone the panels are folded away. */
export async function unfold(page) {
  await page.locator(".panel").evaluateAll((all) => all.forEach((panel) => (panel.open = true)));
}

export const card = (page, slot, part) => page.locator(`.card[data-slot="${slot}"] .${part}`);

export async function run_streams(page, count, prompt = "Once upon a time") {
  await view(page, "Side by side");
  await page.getByLabel("Prompt of all streams").fill(prompt);
  await page.getByLabel("Streams", { exact: true }).fill(String(count));
  await button(page, "Run").click();
}

/** Whether the whole element is in the window, without scrolling. */
export async function seen(locator) {
  const box = await locator.boundingBox();
  const { width, height } = locator.page().viewportSize();
  return box && box.x >= 0 && box.y >= 0 && box.x + box.width <= width && box.y + box.height <= height;
}

export async function shot(page, name, how) {
  if (process.env.SHOTS) await page.screenshot({ path: join(process.env.SHOTS, name + ".png"), ...how });
}
