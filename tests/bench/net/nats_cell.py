#!/usr/bin/env python3
"""What a cell costs its servers of NATS: processor time of a cluster under the frames of workers.

  tests/bench/net/nats_cell.py BUILD [--servers 3] [--workers 4,8,16] [--gateways 16] [--steps 100]
                               [--seconds 8]

For each number of workers a cluster is started, and bench_net_nats_cell makes the traffic of so many workers
and of the gateways, one connection each, spread evenly over the servers. Each worker sends a frame to each
gateway in every step, and a board to all four times a second. Prints one line of JSON a number: frames a
second that came, of those that were to come, and the cores that all servers take together. The first
--seconds are not counted. docs/measurements/fleet.md has figures.
"""
import argparse, json, os, socket, subprocess, time

from processes import cpu_s

p = argparse.ArgumentParser()
p.add_argument("build")
p.add_argument("--servers", type=int, default=3)
p.add_argument("--workers", default="4,8,16")
p.add_argument("--gateways", type=int, default=16)
p.add_argument("--steps", type=float, default=100)
p.add_argument("--seconds", type=float, default=8)
a = p.parse_args()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def cluster():
    clients, routes = ([free_port() for _ in range(a.servers)] for _ in range(2))
    all_routes = ",".join(f"nats://127.0.0.1:{r}" for r in routes)
    in_cluster = ["--cluster_name", "bench", "--routes", all_routes]
    children = [subprocess.Popen(["nats-server", "-a", "127.0.0.1", "-p", str(c), "-n", f"n{c}", "--cluster",
                                  f"nats://127.0.0.1:{r}", *in_cluster], stderr=subprocess.DEVNULL)
                for c, r in zip(clients, routes)]
    for c in clients:
        while True:
            try:
                socket.create_connection(("127.0.0.1", c), 1).close()
                break
            except OSError:
                time.sleep(0.05)
    time.sleep(1)  # for the routes
    return children, [f"nats://127.0.0.1:{c}" for c in clients]


def one(workers):
    servers, urls = cluster()
    load = subprocess.Popen([os.path.join(a.build, "tests/bench/net/bench_net_nats_cell"), str(workers),
                             str(a.gateways), str(a.steps), str(a.seconds), *urls],
                            stdout=subprocess.PIPE, text=True)
    try:
        for line in load.stdout:
            if line.startswith("{"):
                break
        before, began = [cpu_s(s.pid) for s in servers], time.monotonic()
        load_before = cpu_s(load.pid)
        got = json.loads(load.stdout.readline())
        took = time.monotonic() - began
        spent = sum(cpu_s(s.pid) for s in servers) - sum(before)
        wanted = workers * a.gateways * a.steps
        return {"servers": a.servers, "workers": workers, "gateways": a.gateways, "steps": a.steps,
                "frames_per_s": round(got["frames"] / took), "of": round(wanted),
                "bytes_a_frame": round(got["bytes"] / max(1, got["frames"])),
                "other_messages_per_s": round(got["others"] / took), "refused": got["refused"],
                "server_cores": round(spent / took, 3),
                "server_us_a_frame": round(spent / got["frames"] * 1e6, 2),
                "load_cores": round((cpu_s(load.pid) - load_before) / took, 3)}
    finally:
        for child in (load, *servers):
            child.kill()
            child.wait()


for n in a.workers.split(","):
    print(json.dumps(one(int(n))), flush=True)
