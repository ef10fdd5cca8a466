#!/usr/bin/env python3
"""Honest streams beside attackers: how much more jitter they see, and how much memory the server takes.

  tests/bench/net/attacked.py BUILD [--streams 64] [--rate 50] [--attackers 1000] [--messages 2000]
                              [--pairs 5] [--cpus N] [--io-threads N] [--staggered]

Starts one `weir serve --device sim`. In pairs of rounds, loads it with STREAMS streams of RATE tokens a
second, alone and beside ATTACKERS slow, as many mute and as many hostile connections (MESSAGES bad messages a
second together). With `--cpus N` the machine's N cores are divided: the server has the first quarter, the
streams' reader the next, the attackers the rest. Prints one line of JSON: added jitter and the longest
delay of both kinds of rounds, the difference of each pair, and resident memory.
"""
import argparse, json, os, re, statistics, subprocess, tempfile, time

p = argparse.ArgumentParser()
p.add_argument("build")
p.add_argument("--streams", type=int, default=64)
p.add_argument("--rate", type=float, default=50)
p.add_argument("--attackers", type=int, default=1000)
p.add_argument("--messages", type=int, default=2000)
p.add_argument("--pairs", type=int, default=5)
p.add_argument("--seconds", type=float, default=8)
p.add_argument("--cpus", type=int, default=0)
p.add_argument("--io-threads", type=int, default=1)
p.add_argument("--staggered", action="store_true",
               help="tokens of different streams are sampled at different moments")
a = p.parse_args()

weir = os.path.join(a.build, "weir")
stranger = os.path.join(a.build, "tests/stranger/stranger")
quarter = max(1, a.cpus // 4)


def on(first, last, command):
    return ["taskset", "-c", f"{first}-{last - 1}"] + command if a.cpus else command


def resident_mb():
    return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{server.pid}/status").read())[1]) / 1024


def jitter():
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run(on(quarter, 2 * quarter, [weir, "load", "--url", url.replace("http", "ws"),
                       "--streams", str(a.streams),
                       "--duration", str(a.seconds), "--warmup", "2", "--ramp", "1", "--prompt-tokens", "4",
                       "--max-tokens", str(int(a.rate * (a.seconds + 4))), "--json", out.name]),
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        f = json.load(open(out.name))["figures"]
        if "p99" not in f["added_jitter_ms"]:
            raise SystemExit(f"no stream was measured: {f['errors']} errors, {f['refused']} refused")
        return {"p99": f["added_jitter_ms"]["p99"], "max": f["added_jitter_ms"]["max"], "errors": f["errors"],
                "gaps": f["gaps"], "repeats": f["repeats"]}


sim = f"sim:rate={a.rate},prefill=100000000" + (",arrive=staggered" if a.staggered else "")
server = subprocess.Popen(on(0, quarter, [weir, "serve", "--device", sim, "--listen", "127.0.0.1:0",
                          "--max-batch", str(min(8192, a.streams + 4 * a.attackers)), "--queue", "8192",
                          "--kv-tokens", "30000000", "--max-jobs", "64", "--io-threads", str(a.io_threads),
                          "--log-level", "error"]), stdout=subprocess.PIPE, text=True)
try:
    url = server.stdout.readline().split()[2]
    rounds, memory = {"alone": [], "attacked": []}, {"idle": resident_mb(), "attacked": 0}
    for _ in range(a.pairs):
        rounds["alone"].append(jitter())
        attack = subprocess.Popen(on(2 * quarter, a.cpus, [stranger, "--attack", url.split("//")[1],
                                  "--slow", str(a.attackers),
                                  "--mute", str(a.attackers), "--hostile", str(a.attackers),
                                  "--messages-per-s", str(a.messages), "--seconds", str(int(a.seconds + 6))]),
                                  stdout=subprocess.PIPE, text=True)
        time.sleep(2)
        rounds["attacked"].append(jitter())
        memory["attacked"] = max(memory["attacked"], resident_mb())
        said = attack.communicate()[0].strip()
    memory["after"] = resident_mb()
    more = [b["p99"] - c["p99"] for b, c in zip(rounds["attacked"], rounds["alone"])]
    print(json.dumps({"streams": a.streams, "attackers_of_each_kind": a.attackers,
                      "alone_p99_ms": [r["p99"] for r in rounds["alone"]],
                      "attacked_p99_ms": [r["p99"] for r in rounds["attacked"]],
                      "added_p99_ms": {"median": round(statistics.median(more), 3),
                                       "all": [round(m, 3) for m in more]},
                      "longest_ms": {kind: [r["max"] for r in all] for kind, all in rounds.items()},
                      "faults": sum(r["errors"] + r["gaps"] + r["repeats"]
                                    for r in rounds["alone"] + rounds["attacked"]),
                      "resident_mb": {k: round(v, 1) for k, v in memory.items()}, "attack": said}))
finally:
    server.terminate()
    try:
        server.wait(5)
    except subprocess.TimeoutExpired:
        server.kill()
