#!/usr/bin/env python3
"""Does request 10,000 cost what request 1 cost?

    flat_cost.py WEIR MODEL_DIR [REQUESTS]

Starts `weir serve` on the CPU, warms it up until its prefix cache is full, then sends REQUESTS different
prompts one after the other over one connection. Prints the server's CPU time (all threads, from the
scheduler's own account) and its resident memory: medians of ten blocks of 100 requests, of the first and of
the last 1,000 requests. After each block a fixed loop of this program is timed as well: its time shows how
much neighbours on the machine take.
"""
import glob, http.client, json, random, re, statistics, subprocess, sys, time

BLOCK, ENDS, WARM_UP = 100, 1000, 2000


def cpu_seconds(pid):
    return sum(int(open(t).read().split()[0]) for t in glob.glob(f"/proc/{pid}/task/*/schedstat")) / 1e9


def resident_bytes(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{pid}/status").read())[1]) * 1024


def fixed_loop():
    start, x = time.thread_time(), 1
    for _ in range(200_000):
        x = x * 1103515245 + 12345 & 0x7FFFFFFF
    return time.thread_time() - start


def main():
    weir, model = sys.argv[1:3]
    requests = int(sys.argv[3]) if len(sys.argv) > 3 else 10_000
    server = subprocess.Popen([weir, "serve", "--model", model, "--device", "cpu", "--listen", "127.0.0.1:0",
                               "--kv-tokens", "16384", "--log-level", "error"],
                              stdout=subprocess.PIPE, text=True)
    try:
        port = int(re.search(r":(\d+) ", server.stdout.readline())[1])
        line = http.client.HTTPConnection("127.0.0.1", port)
        chance = random.Random(1)

        def ask():
            body = {"prompt": [chance.randrange(3, 500) for _ in range(100)], "max_tokens": 32,
                    "ignore_eos": True, "temperature": 0.8, "seed": chance.randrange(1 << 30)}
            line.request("POST", "/v1/completions", json.dumps(body), {"content-type": "application/json"})
            answer = line.getresponse()
            usage = json.loads(answer.read())["usage"]
            assert answer.status == 200 and usage["completion_tokens"] == 32, usage

        for i in range(WARM_UP):
            ask()
        blocks = []  # CPU seconds a request, resident bytes, seconds of the fixed loop
        for i in range(requests // BLOCK):
            before = cpu_seconds(server.pid)
            for _ in range(BLOCK):
                ask()
            used = cpu_seconds(server.pid) - before
            blocks.append((used / BLOCK, resident_bytes(server.pid), fixed_loop()))
            if sys.stderr.isatty():
                print(f"\r{(i + 1) * BLOCK} of {requests}", end="", file=sys.stderr)
        n = ENDS // BLOCK
        median = lambda some, of: statistics.median(of(b) for b in some)
        first, last = blocks[:n], blocks[-n:]
        out = {"requests": requests}
        for name, of in (("cpu_ms", lambda b: b[0] * 1e3), ("rss_mb", lambda b: b[1] / 2**20),
                         ("fixed_loop_ms", lambda b: b[2] * 1e3),
                         ("cpu_in_fixed_loops", lambda b: b[0] / b[2])):
            a, z = median(first, of), median(last, of)
            out[name] = {"first": round(a, 4), "last": round(z, 4), "ratio": round(z / a, 4)}
        print(json.dumps(out, indent=1))
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
