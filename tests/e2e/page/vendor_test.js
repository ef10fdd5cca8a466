// The files that others have written are those that npm has, byte for byte, and their checksums are true.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const vendor = fileURLToPath(new URL("../../../net/page/vendor/", import.meta.url));
const packages = fileURLToPath(new URL("../node_modules/", import.meta.url));
const sources = {
  "marked.esm.js": "marked/lib/marked.esm.js",
  "LICENSE-marked": "marked/LICENSE",
  "purify.min.js": "dompurify/dist/purify.min.js",
  "LICENSE-dompurify": "dompurify/LICENSE",
};

test("each file is npm's", () => {
  for (const [name, source] of Object.entries(sources))
    assert.ok(readFileSync(join(vendor, name)).equals(readFileSync(join(packages, source))), name);
});

test("each file has a checksum, which is true, and there are no others", () => {
  const lines = readFileSync(join(vendor, "SHA256SUMS"), "utf8").trim().split("\n");
  for (const line of lines) {
    const [sum, name] = line.split(/\s+/);
    assert.equal(
      createHash("sha256")
        .update(readFileSync(join(vendor, name)))
        .digest("hex"),
      sum,
      name,
    );
  }
  const listed = lines.map((line) => line.split(/\s+/)[1]);
  assert.deepEqual(listed.sort(), Object.keys(sources).sort());
  assert.deepEqual(
    readdirSync(vendor)
      .filter((name) => name !== "SHA256SUMS")
      .sort(),
    listed,
  );
});
