// A page of another origin, in a real browser: what --allow-origin lets it read.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { no_real, open_context, real } from "./kit.js";

const key = "open-sesame-0123456789";

/** A server of one page, on another origin than weir. */
async function other_site(t, html = "<!doctype html><title>elsewhere</title>") {
  const site = createServer((_, answer) => {
    answer.setHeader("content-type", "text/html");
    answer.end(typeof html === "function" ? html() : html);
  });
  await new Promise((resolve) => site.listen(0, "127.0.0.1", resolve));
  t.after(() => site.close());
  return `http://127.0.0.1:${site.address().port}`;
}

/** A page of the site, and a server that allows `origin`. */
async function page_and_server(t, site, origin) {
  const folder = mkdtempSync(join(tmpdir(), "weir-cors-"));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, "keys"), key + "\n");
  const server = await real(t, {
    args: ["--device", "sim", "--api-key-file", join(folder, "keys"), "--allow-origin", origin],
  });
  const page = await (await open_context(t)).newPage();
  await page.goto(site);
  return { page, server };
}

/** In the page: the outcome of a request. */
const ask = (page, url, options) =>
  page.evaluate(
    async ([where, how]) => {
      try {
        const answer = await fetch(where, how);
        const id = answer.headers.get("x-request-id");
        return { status: answer.status, id, text: await answer.text() };
      } catch (error) {
        return { failed: error.name };
      }
    },
    [url, options],
  );

const post = (body, headers) => ({
  method: "POST",
  headers: { "content-type": "application/json", ...headers },
  body: JSON.stringify(body),
});
const chat = { messages: [{ role: "user", content: "hi" }], max_tokens: 3, stream: true };

const readme = readFileSync(new URL("../../../README.md", import.meta.url), "utf8");
const snippet = /In a page of your own[^]*?```html\n([^]*?)```/.exec(readme)[1];

/** The README's page, for the server at this address. */
const page_of_ones_own = ({ port }) => snippet.replaceAll("127.0.0.1:8080", `127.0.0.1:${port}`);

/** The text of the README's page once it has come to its end. */
async function shows_forty_tokens(page) {
  await page.waitForFunction(() => document.body?.textContent.trim().split(/\s+/).length >= 40);
  return page.locator("body").innerText();
}

describe("the README's page of one's own", { skip: no_real }, () => {
  const serve = (t, ...args) => real(t, { args: ["--device", "sim:rate=2000", ...args] });

  test("runs from another origin with the option that the README names", async (t) => {
    let html = "";
    const site = await other_site(t, () => html);
    const server = await serve(t, "--allow-origin", site);
    html = page_of_ones_own(server);
    const page = await (await open_context(t)).newPage();
    await page.goto(site);
    assert.match(await shows_forty_tokens(page), /^(w\d{3} ?){40}/);
  });

  test("runs from a file with the option that the README names", async (t) => {
    const server = await serve(t, "--allow-origin", "null");
    assert.match(server.log(), /warning --allow-origin null: pages from files may use the server/);
    const folder = mkdtempSync(join(tmpdir(), "weir-own-page-"));
    t.after(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, "page.html"), page_of_ones_own(server));
    const page = await (await open_context(t)).newPage();
    await page.goto(pathToFileURL(join(folder, "page.html")).href);
    await shows_forty_tokens(page);
  });

  test("without the option nothing is shown, and the console says which option it is", async (t) => {
    let html = "";
    const site = await other_site(t, () => html);
    const server = await serve(t);
    html = page_of_ones_own(server);
    const page = await (await open_context(t)).newPage();
    const failed = page.waitForEvent("pageerror");
    await page.goto(site);
    assert.match((await failed).message, /--allow-origin/);
  });
});

describe("a page of another origin", { skip: no_real }, () => {
  test("that is allowed reads models, streams, refusals and their headers", async (t) => {
    const site = await other_site(t);
    const { page, server } = await page_and_server(t, site, site);
    const bearer = { authorization: `Bearer ${key}` };
    const models = await ask(page, `${server.url}/v1/models`, { headers: bearer });
    assert.equal(models.status, 200);
    assert.match(models.id, /^[0-9a-f]{32}$/);
    const openai = await ask(page, `${server.url}/v1/chat/completions`, post(chat, bearer));
    assert.equal(openai.status, 200);
    assert.match(openai.text, /data: \[DONE\]/);
    const anthropic = { "x-api-key": key, "anthropic-version": "2023-06-01", "x-stainless-lang": "js" };
    const message = await ask(page, `${server.url}/v1/messages`, post(chat, anthropic));
    assert.equal(message.status, 200);
    assert.match(message.text, /event: message_stop/);
    const stranger = await ask(page, `${server.url}/v1/models`);
    assert.equal(stranger.status, 401);
    const job = `${server.url}/v1/jobs/${"0".repeat(32)}`;
    assert.equal((await ask(page, job, { method: "DELETE", headers: bearer })).status, 404);
  });

  test("that is not allowed reads nothing, and gets no token where it is", async (t) => {
    const site = await other_site(t);
    const bearer = { authorization: `Bearer ${key}` };
    const closed = await page_and_server(t, site, "https://app.example");
    for (const options of [{ headers: bearer }, {}])
      assert.deepEqual(await ask(closed.page, `${closed.server.url}/v1/models`, options), {
        failed: "TypeError",
      });
    const open = await page_and_server(t, site, site);
    const token = await ask(open.page, `${open.server.url}/v1/stream/tokens`, post({}, bearer));
    assert.deepEqual(token, { failed: "TypeError" });
  });
});
