// bursts.js — a source of tokens that come in bursts, and a measure of how uneven times are.

/** Numbers in [0, 1) from a seed: mulberry32. */
export function seeded(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let x = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** When each token arrives, in ms: 1 to 5 tokens every 45 ms, and a stall of 150 ms every 50 tokens. */
export function bursty(seed, tokens = 600) {
  const random = seeded(seed);
  const arrivals = [];
  for (let at = 100; arrivals.length < tokens; at += 45) {
    for (let i = 1 + Math.floor(random() * 5); i > 0 && arrivals.length < tokens; i--) {
      arrivals.push(at);
      if (arrivals.length % 50 === 0) at += 150;
    }
  }
  return arrivals;
}

/** The standard deviation of the gaps between these times, over their mean. */
export function gap_cv(times) {
  const gaps = times.slice(1).map((time, i) => time - times[i]);
  const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
  return Math.sqrt(gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / gaps.length) / mean;
}

/** In the page: when each token of one stream arrived, was put into the document, and was painted. */
export async function watch_paint() {
  document.body.replaceChildren();
  const { connect } = await import("/weir.js");
  const stream = connect(location.origin).create({ input: "" }, { play: true });
  const seen = [];
  let unpainted = [];
  const after_paint = new MessageChannel();
  after_paint.port1.onmessage = () => {
    for (const token of unpainted.splice(0)) token.painted = performance.now();
  };
  const each_frame = () => {
    after_paint.port2.postMessage(null);
    requestAnimationFrame(each_frame);
  };
  each_frame();
  stream.on("delta", ({ text, at }) => {
    document.body.append(text);
    const token = { at, shown: performance.now() };
    seen.push(token);
    unpainted.push(token);
  });
  await stream.done;
  while (unpainted.length > 0) await new Promise(requestAnimationFrame);
  return { seen, text: document.body.textContent };
}
