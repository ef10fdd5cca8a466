#!/usr/bin/env python3
"""What a fleet costs beside one server: delays, processor time, and the pause when a worker is killed.

  tests/bench/net/fleet.py BUILD [--streams 64] [--rate 50] [--seconds 8] [--rounds 5] [--kills 10]
                           [--delay-ms 0] [--loss 0]

Each round loads `weir serve` and then a fleet (a server of NATS, a gateway and a worker) with the same
streams of the simulated device, in an order that alternates. Then a gateway and two workers have one of
the workers killed, --kills times. With --delay-ms or --loss NATS and the worker are in a box of their own
(boxes.py, as root), to which a packet takes so long, or gets lost, so many of a hundred. Prints one line of
JSON a kind of figure; docs/measurements/fleet.md has figures.
"""
import argparse, json, os, signal, statistics, threading, time

from boxes import Boxes, Secrets
from processes import load, nats, ready, threads_cpu_s

p = argparse.ArgumentParser()
p.add_argument("build")
p.add_argument("--streams", type=int, default=64)
p.add_argument("--rate", type=float, default=50)
p.add_argument("--seconds", type=float, default=8)
p.add_argument("--rounds", type=int, default=5)
p.add_argument("--kills", type=int, default=10)
p.add_argument("--delay-ms", type=float, default=0)
p.add_argument("--loss", type=float, default=0)
a = p.parse_args()

weir = os.path.join(a.build, "weir")
sim = f"sim=sim:rate={a.rate},prefill=100000000"
sample = os.path.join(os.path.dirname(__file__), "../../../docs/fleet/nats-server.conf")
engine = ["--device", sim.partition("=")[2], "--max-batch", "1024", "--kv-tokens", "30000000"]
ramp_s = 0.5
endless = int(a.rate * (a.seconds + 60))  # tokens of an answer that outlives its round


def measured(url, watched, at):
    """The figures of one load, and the processor time of the watched processes in it."""
    before = {name: threads_cpu_s(pid) for name, pid in watched.items()}
    f = load(weir, url, a.streams, a.seconds, endless, ramp_s, at=at)
    spent = {name: {t: s - before[name].get(t, 0) for t, s in threads_cpu_s(pid).items()}
             for name, pid in watched.items()}
    f["first_ms"] = load(weir, url, 1, 2, 1, 0, at=at)["ttft_ms"]["p50"]
    return f, spent


def owner_s(spent):
    return sum(s for t, s in spent.items() if t.startswith("weir-sim") or t.startswith("weir-gpu"))


def beside_one_server():
    rounds = []
    here = there = ()
    if a.delay_ms or a.loss:
        boxes, secrets = Boxes(a.delay_ms, a.loss), Secrets()
        here, there = boxes.client, boxes.server
        broker, port = nats(["-c", sample], secrets.environment, there)
        join = {role: secrets.join(role, port) for role in ("worker", "gateway")}
    else:
        broker, port = nats()
        join = dict.fromkeys(("worker", "gateway"), ["--join", f"nats://127.0.0.1:{port}"])
    worker, _ = ready(weir, ["worker", *join["worker"], *engine], there)
    gateway, far = ready(weir, ["gateway", *join["gateway"], "--model", sim, "--listen", "127.0.0.1:0"], here)
    server, near = ready(weir, ["serve", *engine, "--listen", "127.0.0.1:0", "--queue", "1024"], here)
    time.sleep(2)
    try:
        for i in range(a.rounds):
            both = [("serve", near, {"serve": server.pid}),
                    ("fleet", far, {"gateway": gateway.pid, "worker": worker.pid, "nats": broker.pid})]
            in_turns = both if i % 2 else both[::-1]
            got = {name: measured(url, watched, here) for name, url, watched in in_turns}
            (one, one_s), (many, many_s) = got["serve"], got["fleet"]
            steps = a.rate * (a.seconds + ramp_s)
            rounds.append({
                "added_p50_ms": many["added_jitter_ms"]["p50"] - one["added_jitter_ms"]["p50"],
                "added_p99_ms": many["added_jitter_ms"]["p99"] - one["added_jitter_ms"]["p99"],
                "gap_p99_ms": many["itl_ms"]["p99"],
                "longest_gap_ms": many["gap_max_ms"]["max"],
                "first_token_p50_ms": many["first_ms"] - one["first_ms"],
                "frames_a_cpu_s_serve": one["frames"] / sum(one_s["serve"].values()),
                "frames_a_cpu_s_gateway": many["frames"] / sum(many_s["gateway"].values()),
                "owner_us_a_step_serve": owner_s(one_s["serve"]) / steps * 1e6,
                "owner_us_a_step_worker": owner_s(many_s["worker"]) / steps * 1e6,
                "sender_share_of_a_core": many_s["worker"].get("weir-bus-send", 0) / (a.seconds + ramp_s),
                "nats_us_a_step": sum(many_s["nats"].values()) / steps * 1e6,
            })
    finally:
        for child in (server, gateway, worker, broker):
            child.terminate()
            child.wait()
    return {k: round(statistics.median(r[k] for r in rounds), 4) for k in rounds[0]}


def killed():
    """The longest gap of each stream whose worker is killed with -9, and what was lost."""
    broker, port = nats()
    join = ["--join", f"nats://127.0.0.1:{port}"]
    gateway, url = ready(weir, ["gateway", *join, "--model", sim, "--listen", "127.0.0.1:0"])
    keeper, _ = ready(weir, ["worker", *join, *engine])
    out = []
    try:
        for _ in range(a.kills):
            victim, _ = ready(weir, ["worker", *join, *engine])
            time.sleep(1)
            timer = threading.Timer(5, lambda: (victim.send_signal(signal.SIGKILL), victim.wait()))
            timer.start()
            f = load(weir, url, a.streams, 8, endless, ramp_s)
            timer.join()
            out.append(f)
            time.sleep(1)
    finally:
        for child in (gateway, keeper, broker):
            child.terminate()
            child.wait()
    moved = sorted(f["gap_max_ms"]["max"] for f in out)
    return {"kills": a.kills, "longest_gap_p50_ms": moved[len(moved) // 2], "longest_gap_ms": moved[-1],
            **{k: sum(f[k] for f in out) for k in ("gaps", "repeats")}}


print(json.dumps({"kind": "beside one server", "streams": a.streams, "rate": a.rate, "rounds": a.rounds,
                  "delay_ms": a.delay_ms, "loss_percent": a.loss, **beside_one_server()}), flush=True)
if a.kills:
    print(json.dumps({"kind": "a worker is killed", **killed()}), flush=True)
