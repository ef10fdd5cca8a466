// The picture of the README: a test makes it (`./run picture`), so that it shows the page as it is. PICTURE
// names the file.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { client_of } from "../client_kit.js";
import { body, button, grows, no_real, real, send, set, visit } from "./kit.js";

const rill = fileURLToPath(new URL("../../../models/rill", import.meta.url));
const most_bytes = 200 * 1024;

describe("the picture of the README", { skip: no_real }, () => {
  test("a story that the bundled model writes, with the network bursty", async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "weir-picture-"));
    t.after(() => rmSync(folder, { recursive: true }));
    const server = await real(t, { args: ["--model", rill, "--device", "cpu"] });
    const page = await visit(t, server);
    await set(page, { Seed: "7", "Max tokens": "400" });
    await send(page, "What is 128 + 57?");
    await page
      .locator(".turn:last-child .state")
      .getByText(/^finished/)
      .waitFor();
    await button(page, "Bursty network").click();
    const others = keep_busy(server);
    await send(page, "Tell me a funny story about a fox named Ada.");
    while ((await body(page).innerText()).length < 420) await grows(page);
    await page.locator("#sequences [data-state=decoding]").first().waitFor();
    const path = process.env.PICTURE ?? join(folder, "page.png");
    await page.screenshot({ path, animations: "disabled", caret: "hide" });
    others.close();
    assert.ok(statSync(path).size < most_bytes, `${statSync(path).size} bytes`);
  });
});

/** Others who write at the same time, again and again until their client is closed. */
function keep_busy(server) {
  const client = client_of(server);
  const again = async () => {
    const { status } = await client.create({ input: "Once upon a time", max_tokens: 400 }).done;
    if (status !== "failed") again();
  };
  for (let i = 0; i < 6; i++) again();
  return client;
}
