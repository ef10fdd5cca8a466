#!/usr/bin/env python3
"""What a scrape of /metrics costs, and what it does to streams.

  tests/bench/net/scrape.py BUILD STREAMS RATE [--every MS] [--pairs N] [--seconds N]

Starts `weir serve --device sim`. An idle server is scraped in a row: CPU time and duration of one scrape.
Then `weir load` runs in pairs, alone and beside a reader who scrapes every MS. Prints one line of JSON.
"""
import argparse, http.client, json, os, statistics, subprocess, tempfile, threading, time
from urllib.parse import urlparse

p = argparse.ArgumentParser()
p.add_argument("build")
p.add_argument("streams", type=int)
p.add_argument("rate", type=float)
p.add_argument("--every", type=float, default=100)
p.add_argument("--pairs", type=int, default=3)
p.add_argument("--seconds", type=float, default=10)
p.add_argument("--warmup", type=float, default=3)
p.add_argument("--in-a-row", type=int, default=2000)
a = p.parse_args()

weir = os.path.join(a.build, "weir")
server = subprocess.Popen([weir, "serve", "--device", f"sim:rate={a.rate},prefill=100000000",
                           "--listen", "127.0.0.1:0", "--max-batch", str(min(8192, max(64, a.streams))),
                           "--queue", "8192", "--kv-tokens", "30000000", "--log-level", "warn"],
                          stdout=subprocess.PIPE, text=True)
url = urlparse(server.stdout.readline().split()[2])


def cpu():
    f = open(f"/proc/{server.pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(f[11]) + int(f[12])) / os.sysconf("SC_CLK_TCK")


class Reader:
    def __init__(self):
        self.line = http.client.HTTPConnection(url.hostname, url.port)
        self.took = []
        self.bytes = 0

    def scrape(self):
        began = time.perf_counter()
        self.line.request("GET", "/metrics")
        answer = self.line.getresponse()
        self.bytes = len(answer.read())
        self.took.append((time.perf_counter() - began) * 1000)
        assert answer.status == 200

    def scrape_until(self, over):
        while not over.wait(a.every / 1000):
            self.scrape()


def summary(ms):
    ms = sorted(ms)
    at = lambda q: round(ms[min(len(ms) - 1, int(q * len(ms)))], 3)
    return {"n": len(ms), "p50": at(0.5), "p99": at(0.99), "max": round(ms[-1], 3)}


def load():
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run([weir, "load", "--url", f"ws://{url.netloc}", "--streams", str(a.streams),
                        "--duration", str(a.seconds), "--warmup", str(a.warmup), "--ramp", str(a.warmup / 2),
                        "--max-tokens", str(int(a.rate * (a.seconds + a.warmup) * 2)),
                        "--prompt-tokens", "4", "--json", out.name],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        f = json.load(open(out.name))["figures"]
        assert f["gaps"] + f["repeats"] + f["errors"] == 0
        return f["added_jitter_ms"]["p99"]


try:
    idle = Reader()
    for _ in range(100):
        idle.scrape()
    idle.took.clear()
    before = cpu()
    for _ in range(a.in_a_row):
        idle.scrape()
    cpu_ms = (cpu() - before) * 1000 / a.in_a_row

    alone, beside, under_load = [], [], Reader()
    for _ in range(a.pairs):
        alone.append(load())
        over = threading.Event()
        reading = threading.Thread(target=under_load.scrape_until, args=[over])
        reading.start()
        beside.append(load())
        over.set()
        reading.join()
    print(json.dumps({
        "streams": a.streams, "rate": a.rate, "every_ms": a.every, "bytes": under_load.bytes,
        "idle_cpu_ms": round(cpu_ms, 3), "idle_ms": summary(idle.took),
        "under_load_ms": summary(under_load.took),
        "jitter_p99_alone": round(statistics.median(alone), 2),
        "jitter_p99_beside": round(statistics.median(beside), 2)}))
finally:
    server.terminate()
    try:
        server.wait(5)
    except subprocess.TimeoutExpired:
        server.kill()
