#!/usr/bin/env python3
"""What prompts cost other streams and one another, on the CPU with random weights.

    prompts.py WEIR [TYPE]        TYPE: bf16 (default) or f32

1. A prompt of 4,000 tokens arrives among 16 streams: their longest gap before it, while it is computed, and
   after.
2. 64 jobs share a prefix of 1,500 tokens: how long each waits for its first token, and what the server
   computed.
"""
import http.client, json, random, re, statistics, subprocess, sys, threading, time

chance = random.Random(5)


def ids(n):
    return [chance.randrange(10, 30_000) for _ in range(n)]


class server:
    def __init__(self, weir, kind, *more):
        self.process = subprocess.Popen([weir, "serve", "--model", f"m=random:tiny-110m:{kind}",
                                         "--device", "cpu", "--listen", "127.0.0.1:0",
                                         "--log-level", "error", *more], stdout=subprocess.PIPE, text=True)
        self.port = int(re.search(r":(\d+) ", self.process.stdout.readline())[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def stream(self, prompt, tokens, arrived):
        """Appends the time of each piece of text to `arrived`, and returns the usage."""
        line = http.client.HTTPConnection("127.0.0.1", self.port)
        body = {"prompt": prompt, "max_tokens": tokens, "ignore_eos": True, "stream": True, "temperature": 0,
                "stream_options": {"include_usage": True}}
        line.request("POST", "/v1/completions", json.dumps(body), {"content-type": "application/json"})
        answer, usage = line.getresponse(), None
        for event in answer:
            if not event.startswith(b"data: {"):
                continue
            said = json.loads(event[6:])
            usage = said.get("usage") or usage
            if said["choices"]:
                arrived.append(time.monotonic())
        return usage


def longest(times, begin, end):
    return max((b - a for a, b in zip(times, times[1:]) if begin <= b and a <= end), default=0) * 1e3


def among_streams(weir, kind):
    with server(weir, kind, "--kv-tokens", "32768") as s:
        all_times = [[] for _ in range(16)]
        threads = [threading.Thread(target=s.stream, args=(ids(32), 400, t)) for t in all_times]
        for t in threads:
            t.start()
        while min(map(len, all_times)) < 60:
            time.sleep(0.01)
        began, first = time.monotonic(), []
        s.stream(ids(4000), 1, first)
        ended = time.monotonic()
        for t in threads:
            t.join()
        settled = max(t[20] for t in all_times)
        last = min(t[-1] for t in all_times)
        worst = lambda begin, end: round(max(longest(t, begin, end) for t in all_times), 1)
        gaps = [b - a for t in all_times for a, b in zip(t, t[1:]) if settled <= a and b < began]
        return {"streams": 16, "step_ms_before": round(statistics.median(gaps) * 1e3, 1),
                "longest_gap_ms": {"before": worst(settled, began), "during": worst(began, ended),
                                   "after": worst(ended, last)},
                "prompt_ms": round((ended - began) * 1e3)}


def shared_prefix(weir, kind):
    with server(weir, kind, "--kv-tokens", "32768") as s:
        s.stream(ids(64), 2, [])
        prefix, waits, cached = ids(1500), [], []
        for _ in range(64):
            began, times = time.monotonic(), []
            usage = s.stream(prefix + ids(8), 4, times)
            waits.append((times[0] - began) * 1e3)
            cached.append(usage["prompt_tokens_details"]["cached_tokens"])
        others = statistics.median(waits[1:])
        return {"jobs": 64, "first_ms": round(waits[0], 1),
                "others_ms": {"median": round(others, 1), "longest": round(max(waits[1:]), 1)},
                "others_to_first": round(others / waits[0], 4),
                "cached_tokens": {"first": cached[0], "least_of_others": min(cached[1:])}}


weir, kind = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "bf16"
print(json.dumps({"among_streams": among_streams(weir, kind),
                  "shared_prefix": shared_prefix(weir, kind)}, indent=1))
