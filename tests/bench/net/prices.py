#!/usr/bin/env python3
"""What server-sent events and logprobs cost beside plain weir.v1: tokens a CPU second of the server.

  tests/bench/net/prices.py WEIR [--rounds 7] [--seconds 4] [--streams 64] [--rate 50]

A round measures every kind of stream once, in a rotating order, each with a server of its own: STREAMS
streams of RATE tokens a second from the simulated device, a frame a token. Prints for each kind the median of
its rounds, and the median and the quartiles of its ratio to plain weir.v1 in the same round.
"""
import argparse, json, os, statistics, subprocess, tempfile

p = argparse.ArgumentParser()
p.add_argument("weir")
p.add_argument("--rounds", type=int, default=7)
p.add_argument("--seconds", type=float, default=4)
p.add_argument("--streams", type=int, default=64)
p.add_argument("--rate", type=float, default=50)
a = p.parse_args()

chat = "/v1/chat/completions"
kinds = {
    "weir.v1": ("ws", "", {}),
    "weir.v1, logprobs": ("ws", "", {"logprobs": 0}),
    "weir.v1, logprobs and top 5": ("ws", "", {"logprobs": 5}),
    "weir.v1, logprobs and top 20": ("ws", "", {"logprobs": 20}),
    "server-sent events": ("http", chat, {}),
    "server-sent events, logprobs": ("http", chat, {"logprobs": True}),
    "server-sent events, logprobs and top 5": ("http", chat, {"logprobs": True, "top_logprobs": 5}),
    "server-sent events, logprobs and top 20": ("http", chat, {"logprobs": True, "top_logprobs": 20}),
}


def cpu_s(pid):
    """Of all its threads, to the nanosecond: /proc/PID/stat counts ticks of 10 ms."""
    tasks = f"/proc/{pid}/task"
    return sum(int(open(f"{tasks}/{t}/schedstat").read().split()[0]) for t in os.listdir(tasks)) / 1e9


def measure(scheme, path, fields):
    server = subprocess.Popen([a.weir, "serve", "--device", f"sim:rate={a.rate},prefill=100000000",
                               "--listen", "127.0.0.1:0", "--max-batch", "8192", "--queue", "8192",
                               "--kv-tokens", "30000000", "--log-level", "error"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        url = server.stdout.readline().split()[2].replace("http", scheme) + path
        with tempfile.NamedTemporaryFile(suffix=".json") as out:
            before = cpu_s(server.pid)
            subprocess.run([a.weir, "load", "--url", url, "--streams", str(a.streams),
                            "--duration", str(a.seconds), "--warmup", "0.2", "--ramp", "0.1",
                            "--prompt-tokens", "4", "--max-tokens", str(int(a.rate * a.seconds * 3)),
                            "--extra", json.dumps(fields), "--json", out.name],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            figures = json.load(open(out.name))["figures"]
            assert figures["errors"] == 0, figures
            return figures["output_throughput"] * a.seconds / (cpu_s(server.pid) - before)
    finally:
        server.terminate()
        server.wait()


rounds = []
for i in range(a.rounds):
    order = list(kinds)
    order = order[i % len(order):] + order[:i % len(order)]
    rounds.append({kind: measure(*kinds[kind]) for kind in order})
for kind in kinds:
    ratios = [r[kind] / r["weir.v1"] for r in rounds]
    print(json.dumps({"kind": kind, "tokens_a_cpu_s": round(statistics.median(r[kind] for r in rounds)),
                      "beside_weir_v1": round(statistics.median(ratios), 3),
                      "quartiles": [round(q, 3) for q in statistics.quantiles(ratios, n=4)[::2]],
                      "rounds": a.rounds}))
