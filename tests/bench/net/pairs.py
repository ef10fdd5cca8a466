#!/usr/bin/env python3
"""Two builds of the server, alternately: frames and requests a CPU second, as ratios with 95 % intervals.

  tests/bench/net/pairs.py OLD_WEIR NEW_WEIR [--pairs 20] [--seconds 4] [--streams 64] [--rate 50]
                           [--only KIND]

Each pair measures both programs, in an order that alternates, with the same reader (NEW_WEIR's `weir load`).
Frames: a WebSocket stream each, RATE tokens a second. Requests: completions of one token, one after the other
on 16 connections.
"""
import argparse, json, math, os, statistics, subprocess, tempfile

p = argparse.ArgumentParser()
p.add_argument("old")
p.add_argument("new")
p.add_argument("--pairs", type=int, default=20)
p.add_argument("--seconds", type=float, default=4)
p.add_argument("--streams", type=int, default=64)
p.add_argument("--rate", type=float, default=50)
p.add_argument("--only", choices=["frames", "requests"])
a = p.parse_args()


def measure(weir, sim, load, count):
    server = subprocess.Popen([weir, "serve", "--device", sim, "--listen", "127.0.0.1:0",
                               "--max-batch", "8192", "--queue", "8192", "--kv-tokens", "30000000",
                               "--log-level", "error"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        url = server.stdout.readline().split()[2]
        with tempfile.NamedTemporaryFile(suffix=".json") as out:
            before = cpu_s(server.pid)
            subprocess.run([a.new, "load", "--url", load["scheme"](url), "--duration", str(a.seconds),
                            "--warmup", "0.2", "--ramp", "0.1", "--json", out.name] + load["more"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            return json.load(open(out.name))["figures"][count] / (cpu_s(server.pid) - before)
    finally:
        server.terminate()
        server.wait()


def cpu_s(pid):
    """Of all its threads, to the nanosecond: /proc/PID/stat counts ticks of 10 ms."""
    tasks = f"/proc/{pid}/task"
    return sum(int(open(f"{tasks}/{t}/schedstat").read().split()[0]) for t in os.listdir(tasks)) / 1e9


kinds = {
    "frames": (f"sim:rate={a.rate},prefill=100000000", "frames",
               {"scheme": lambda u: u.replace("http", "ws"),
                "more": ["--streams", str(a.streams), "--prompt-tokens", "4",
                         "--max-tokens", str(int(a.rate * a.seconds * 3))]}),
    "requests": ("sim:rate=1000000,prefill=100000000", "completed",
                 {"scheme": lambda u: u,
                  "more": ["--protocol", "openai", "--streams", "16", "--prompt-tokens", "8",
                           "--max-tokens", "1"]}),
}
for kind, (sim, count, load) in kinds.items():
    if a.only not in (None, kind):
        continue
    logs = []
    for i in range(a.pairs):
        order = (a.old, a.new) if i % 2 else (a.new, a.old)
        got = {weir: measure(weir, sim, load, count) for weir in order}
        logs.append(math.log(got[a.new] / got[a.old]))
    mean = statistics.mean(logs)
    half = 2.1 * statistics.stdev(logs) / math.sqrt(len(logs))  # Student's t for some twenty pairs
    print(json.dumps({"kind": kind + " a CPU second", "new/old": round(math.exp(mean), 4),
                      "interval95": [round(math.exp(mean - half), 4), round(math.exp(mean + half), 4)],
                      "pairs": a.pairs,
                      "last_new": round(got[a.new]), "last_old": round(got[a.old])}), flush=True)
