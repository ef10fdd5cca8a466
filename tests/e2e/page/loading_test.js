// A page that is opened, or a server that is started again, while a model loads.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { describe, test } from "node:test";
import { answered, button, connected, fake, no_browser, no_real, open_page } from "./kit.js";
import { send, shot, visit } from "./kit.js";

const loading = { model: "big", done: 30e9, total: 100e9 };

function load(server) {
  Object.assign(server, { models: [], loading });
}

function loaded(server) {
  Object.assign(server, { models: ["big"], loading: undefined });
}

describe("a model that loads", { skip: no_browser }, () => {
  test("a page opened meanwhile shows progress, and fills in by itself", async (t) => {
    const server = await fake(t);
    load(server);
    const page = await visit(t, server);
    await page.getByText("The model big is loading: 30 %. The page goes on by itself.").waitFor();
    assert.equal(await page.locator("#loading-bar").evaluate((bar) => bar.value / bar.max), 0.3);
    await shot(page, "loading");
    await page.getByLabel("Prompt", { exact: true }).fill("hello");
    await page.getByLabel("Prompt", { exact: true }).press("Enter");
    assert.equal(
      await page.getByLabel("Prompt", { exact: true }).inputValue(),
      "hello",
      "what was typed stays",
    );
    server.loading = { ...loading, done: 60e9 };
    await page.getByText(/is loading: 60 %/).waitFor();
    loaded(server);
    await page.locator("#model option[value=big]").waitFor({ state: "attached" });
    assert.ok(await page.locator("#loading").isHidden());
    await send(page, "hello");
    await answered(page);
    assert.equal(server.received.find(({ type }) => type === "response.create").model, "big");
  });

  test("a suggestion that is clicked meanwhile is kept, and the page says why it is not sent", async (t) => {
    const server = await fake(t);
    load(server);
    const page = await visit(t, server);
    await page.getByText(/^The model big is loading/).waitFor();
    const example = "What is 128 + 57?";
    await button(page, example).click();
    assert.equal(await page.getByLabel("Prompt", { exact: true }).inputValue(), example);
    const why = page.getByText("The model is still loading. Send it again when it is there.");
    await why.waitFor();
    loaded(server);
    await page.locator("#model option[value=big]").waitFor({ state: "attached" });
    await why.waitFor({ state: "hidden" });
    await button(page, "Send").click();
    await answered(page);
    const asked = server.received.filter(({ type }) => type === "response.create");
    assert.deepEqual(
      asked.map(({ input }) => input),
      [[{ role: "user", content: example }]],
    );
  });

  test("a server that is started again and loads is shown as loading, too", async (t) => {
    let server = await fake(t);
    const page = await visit(t, server);
    await server.stop();
    await page.getByText(/^The server is not answering/).waitFor();
    server = await fake(t, { port: server.port });
    load(server);
    await page.getByText(/^The model big is loading/).waitFor();
    loaded(server);
    await page.locator("#model option[value=big]").waitFor({ state: "attached" });
  });
});

describe("a model that loads, on the real server", { skip: no_real }, () => {
  test("the page is there before the model is, and fills in by itself", async (t) => {
    const port = await free_port();
    const args = [
      "serve",
      "--model",
      "big=random:tiny-110m",
      "--device",
      "cpu",
      "--listen",
      `127.0.0.1:${port}`,
    ];
    const server = spawn(process.env.WEIR_BIN, args, { stdio: "ignore" });
    t.after(async () => {
      server.kill("SIGKILL");
      await once(server, "close");
    });
    const url = `http://127.0.0.1:${port}/`;
    while (!(await answers(url))) await new Promise((resolve) => setTimeout(resolve, 5));
    const page = await open_page(t, { url });
    await connected(page);
    const there = page.locator("#model option[value=big]");
    await there.waitFor({ state: "attached", timeout: 200_000 }); // the machine may have other things to do
    await page.locator("#loading").waitFor({ state: "hidden" }); // its news come by another request
  });
});

async function free_port() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

async function answers(url) {
  return fetch(new URL("health/live", url)).then(
    ({ ok }) => ok,
    () => false,
  );
}
