// The page of a gateway in a demonstration: a button kills the worker of the answer that runs, and the answer
// goes on. Elsewhere there is neither the button nor its route.
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { Nats, boards, skip as no_fleet, start_weir, until } from "../fleet_kit.js";
import { answered, body, button, grows, looks, no_browser, send, set, state, unfold } from "./kit.js";
import { view, visit } from "./kit.js";

const device = "sim:rate=40";
const refused = async (words, why) =>
  assert.rejects(start_weir(words), ({ message }) => (assert.match(message, why), true));

/** A fleet of two workers for one test. */
async function fleet_of(t, ...demo) {
  const nats = new Nats();
  await nats.start();
  const all = [];
  t.after(async () => {
    for (const one of all) await one.kill();
    await nats.remove();
  });
  const start = async (...words) => {
    all.push(await start_weir([...words, "--join", nats.url, ...demo]));
    return all.at(-1);
  };
  const workers = [];
  for (let i = 0; i < 2; i++) workers.push(await start("worker", "--device", device));
  const gateway = await start("gateway", "--model", `sim=${device}`, "--listen", "127.0.0.1:0");
  await until(async () => (await boards(nats)).length === 2, "both workers say what they have");
  return { nats, workers, gateway };
}

const posted = ({ url }, path, body) =>
  fetch(`${url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
const kill = async (gateway, id) => (await posted(gateway, `/v1/jobs/${id}/kill-worker`, {})).status;

async function begin(page) {
  await unfold(page);
  await set(page, { Seed: "3", "Max tokens": "300", "Show text": "live" });
  await view(page, "Complete");
  await send(page, "Once");
  await grows(page);
}

describe("the button that kills a worker", { skip: no_browser || no_fleet }, () => {
  for (const [name, look] of Object.entries(looks))
    test(`the worker dies, and the answer goes on, ${name}`, async (t) => {
      const { workers, gateway } = await fleet_of(t, "--demo");
      const page = await visit(t, gateway, look);
      await begin(page);
      await button(page, "Kill the worker").click();
      await page.getByText(/^The process that wrote this was killed/).waitFor();
      assert.equal(await Promise.race(workers.map(({ ended }) => ended)), "SIGKILL");
      await grows(page);
      await answered(page);
      await state(page)
        .getByText(/^reached its limit of/)
        .waitFor();
      await page.getByText("1 answer has gone on at another worker").waitFor();
      const disturbed = await body(page).innerText();
      await button(page, "Retry").click();
      await grows(page);
      await answered(page);
      assert.equal(await body(page).innerText(), disturbed);
      await button(page, "Kill the worker").click();
      await page.getByText(/^Nothing is being written now/).waitFor();
    });

  test("a gateway that is no demonstration has no such button and no such route", async (t) => {
    const { workers, gateway } = await fleet_of(t);
    const page = await visit(t, gateway);
    await begin(page);
    await page.locator("#workers li").nth(1).waitFor();
    assert.ok(await page.locator("#kill-worker").isHidden());
    const jobs = (await (await fetch(`${gateway.url}/v1/jobs`)).json()).jobs;
    const { id } = jobs.find(({ finish_reason }) => !finish_reason);
    assert.equal(await kill(gateway, id), 404);
    await answered(page);
    for (const worker of workers) assert.ok(worker.signal(0), "it lives");
  });

  test("a job that is unknown, or over, kills nobody", async (t) => {
    const { workers, gateway } = await fleet_of(t, "--demo");
    assert.equal(await kill(gateway, "0123456789abcdef0123456789abcdef"), 404);
    assert.equal(await kill(gateway, "x"), 404);
    const answer = await posted(gateway, "/v1/completions", { model: "sim", prompt: "x", max_tokens: 3 });
    const { id } = await answer.json();
    assert.equal(await kill(gateway, id), 404);
    for (const worker of workers) assert.ok(worker.signal(0), "it lives");
  });

  test("a demonstration is refused by name unless all of it is on this machine", async () => {
    const model = ["--model", `sim=${device}`];
    const near = ["--join", "nats://127.0.0.1:1"];
    const far = ["--join", "tls://nats.example.com"];
    const open = ["--listen", "0.0.0.0:0", "--demo"];
    await refused(["gateway", ...near, ...model, ...open], /--demo: .*--listen 0\.0\.0\.0/);
    await refused(["gateway", ...far, ...model, "--listen", "127.0.0.1:0", "--demo"], /--demo: .*--join/);
    await refused(["worker", ...far, "--device", device, "--demo"], /--demo: .*--join/);
  });
});
