#!/usr/bin/env python3
"""Streams through the whole server beside a bare Beast loop: what `weir load` sees, and what each costs.

  tests/bench/net/streams.py BUILD STREAMS RATE [--staggered] [--seconds N] [--bare] [--sse]

Starts `weir serve --device sim` (or the bare loop), loads it over loopback, and prints one line of JSON.
"""
import argparse, json, os, subprocess, sys, tempfile, time

p = argparse.ArgumentParser()
p.add_argument("build")
p.add_argument("streams", type=int)
p.add_argument("rate", type=float)
p.add_argument("--staggered", action="store_true")
p.add_argument("--seconds", type=float, default=10)
p.add_argument("--warmup", type=float, default=3)
p.add_argument("--bare", action="store_true")
p.add_argument("--sse", action="store_true")
p.add_argument("--slow", default="")
a = p.parse_args()

weir = os.path.join(a.build, "weir")
if a.bare:
    server = subprocess.Popen([os.path.join(a.build, "tests/bench/net/bench_net_bare_loop"), str(a.rate)],
                              stdout=subprocess.PIPE, text=True)
    url = server.stdout.readline().strip()
else:
    sim = f"sim:rate={a.rate},prefill=100000000" + (",arrive=staggered" if a.staggered else "")
    server = subprocess.Popen([weir, "serve", "--device", sim, "--listen", "127.0.0.1:0",
                               "--max-batch", str(min(8192, max(64, a.streams))), "--queue", "8192",
                               "--kv-tokens", "30000000", "--log-level", "warn"],
                              stdout=subprocess.PIPE, text=True)
    url = server.stdout.readline().split()[2].replace("http", "http" if a.sse else "ws")


def cpu():
    f = open(f"/proc/{server.pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(f[11]) + int(f[12])) / os.sysconf("SC_CLK_TCK")


try:
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        more = ["--slow-readers", a.slow, "--read-rate", "0"] if a.slow else []
        before, began = cpu(), time.time()
        subprocess.run([weir, "load", "--url", url, "--streams", str(a.streams), "--duration", str(a.seconds),
                        "--warmup", str(a.warmup), "--ramp", str(a.warmup / 2),
                        "--max-tokens", str(int(a.rate * (a.seconds + a.warmup) * 2)),
                        "--prompt-tokens", "4", "--json", out.name] + more,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        r = json.load(open(out.name))
        f = r["figures"]
        used = cpu() - before
        # the warm-up's frames, too: the load rises over half of it
        sent = f["frames"] * (a.seconds + a.warmup * 0.75) / a.seconds
        jitter = f["added_jitter_ms"]
        print(json.dumps({
            "server": "bare" if a.bare else "sse" if a.sse else "weir",
            "streams": a.streams, "rate": a.rate, "staggered": a.staggered,
            "tokens_s": round(f["output_throughput"]),
            "jitter_p50": jitter.get("p50"), "jitter_p99": jitter.get("p99"), "jitter_max": jitter.get("max"),
            "itl_p99": f["itl_ms"].get("p99"), "coalesced": f["coalesced_frac"]["all"],
            "gaps": f["gaps"], "repeats": f["repeats"], "errors": f["errors"],
            "client_cpu": round(f["client_cpu"], 3), "loop_lag_p99": f["loop_lag_ms"].get("p99"),
            "server_cpu_s": round(used, 2), "frames_per_cpu_s": round(sent / used),
            "rss_mb": round(f["server_rss_bytes"] / 1e6, 1),
            "slow_closed": f["slow_closed"], "leaked": f["leaked_jobs"], "bottleneck": r["bottleneck"]}))
finally:
    server.terminate()
    try:
        server.wait(5)
    except subprocess.TimeoutExpired:
        server.kill()
