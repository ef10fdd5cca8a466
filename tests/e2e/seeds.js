// Where random tests get their seeds: WEIR_TEST_SEED, any text in the environment, decides all of them, as
// in the tests that are compiled (tests/support/seed.h). Without it a test draws the seeds that its source
// names.
import { createHash } from "node:crypto";

const text = process.env.WEIR_TEST_SEED;
const base = text ? createHash("sha256").update(text).digest().readUInt32LE() >>> 2 : 0;

/** The run's n-th seed: a whole number below 2 ** 31 for every n below 2 ** 30. */
export const drawn = (n) => base + n;
