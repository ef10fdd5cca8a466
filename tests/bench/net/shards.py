#!/usr/bin/env python3
"""What more threads of sockets bring a gateway: frames a second, where there are more than it can send.

  tests/bench/net/shards.py BUILD [--threads 1,2,4] [--workers 4] [--streams 2048] [--rate 200]
                            [--seconds 6] [--rounds 3] [--harness 6]

Wants more cores than threads of the gateway, workers, harness and NATS together: with 4 threads about 16.
Each round starts, for each number of threads, a server of NATS, the workers with the simulated device and a
gateway, and loads the gateway with all streams. A stream that is behind gets several tokens a frame, so that
tokens alone would not show the limit. Prints one line of JSON a number of threads: medians of frames and
tokens a second, and the cores that each kind of the gateway's threads took from the first connection to the
last; docs/measurements/fleet.md has figures.
"""
import argparse, json, os, statistics, time

from processes import load, nats, ready, threads_cpu_s

p = argparse.ArgumentParser()
p.add_argument("build")
p.add_argument("--threads", default="1,2,4")
p.add_argument("--workers", type=int, default=4)
p.add_argument("--streams", type=int, default=2048)
p.add_argument("--rate", type=float, default=200)
p.add_argument("--seconds", type=float, default=6)
p.add_argument("--rounds", type=int, default=3)
p.add_argument("--harness", type=int, default=6)
a = p.parse_args()

weir = os.path.join(a.build, "weir")
device = f"sim:rate={a.rate},prefill=100000000"
ramp_s = 1
endless = int(a.rate * (a.seconds + 60))


def one(threads):
    broker, port = nats()
    join = ["--join", f"nats://127.0.0.1:{port}"]
    children = [broker]
    try:
        for _ in range(a.workers):
            children.append(ready(weir, ["worker", *join, "--device", device, "--max-batch", "1024",
                                         "--kv-tokens", "60000000"])[0])
        gateway, url = ready(weir, ["gateway", *join, "--model", f"sim={device}", "--listen", "127.0.0.1:0",
                                    "--io-threads", str(threads), "--max-jobs", "8192"])
        children.append(gateway)
        before, began = threads_cpu_s(gateway.pid), time.monotonic()
        f = load(weir, url, a.streams, a.seconds, endless, ramp_s, a.harness)
        took = time.monotonic() - began
        cores = {t: (s - before.get(t, 0)) / took for t, s in threads_cpu_s(gateway.pid).items()}
        return {"frames_per_s": f["frames"] / f["duration_s"], "tokens_per_s": f["output_throughput"],
                "cores of the harness": f["client_cpu"] * a.harness,
                **{f"cores {t}": c for t, c in sorted(cores.items()) if c > 0.02}}
    finally:
        for child in reversed(children):
            child.terminate()
            child.wait()


of = {int(n): [] for n in a.threads.split(",")}
for i in range(a.rounds):
    for n in sorted(of, reverse=i % 2 == 1):
        of[n].append(one(n))
for n, rounds in of.items():
    names = sorted({k for r in rounds for k in r})
    print(json.dumps({"threads": n, "rounds": a.rounds,
                      **{k: round(statistics.median(r.get(k, 0) for r in rounds), 3) for k in names}}),
          flush=True)
