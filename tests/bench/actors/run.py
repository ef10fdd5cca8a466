#!/usr/bin/env python3
"""Runs the actor benchmarks of weir, CAF and bare Asio side by side, and says what came out.

  run.py measure [PROGRAM...] [--repeat=N] [--threads=1,2] [--sizes=small|all|published] [--out=FILE] [--fresh]
  run.py table FILE        Markdown: medians, with the spread
  run.py draw FILE DIR     curves, as SVG

Peers take turns within each repetition, so that what the machine does meanwhile falls on all of them. What is
measured is added to FILE: a long measurement may be taken in pieces. A peer that was not built is left out.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path

import draw

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PEERS = ["weir", "caf", "asio"]
NAMES = {"weir": "weir", "caf": "CAF 0.17", "asio": "bare Asio"}

# Each program at several sizes, smallest first; `published` is the size its authors chose.
PROGRAMS = {
    "actor_creation": {"sizes": [[12], [14], [16], [18], [20]], "published": [20]},
    "mailbox_performance": {"sizes": [[100, 1_000], [100, 10_000], [100, 100_000], [100, 1_000_000]],
                            "published": [100, 1_000_000]},
    "mixed_case": {"sizes": [[10, 100, 1000, 4, 0], [30, 100, 1000, 4, 0], [100, 100, 1000, 4, 0],
                             [10, 100, 1000, 4, 1], [100, 100, 1000, 4, 1]], "published": [100, 100, 1000, 4, 1]},
    "pingpong": {"sizes": [[4_000], [40_000], [400_000]], "published": [40_000]},
    "count": {"sizes": [[10_000], [100_000], [1_000_000], [10_000_000]], "published": [1_000_000]},
    "fjthrput": {"sizes": [[1_000, 60], [10_000, 60], [100_000, 60]], "published": [10_000, 60]},
    "threadring": {"sizes": [[100, 10_000], [100, 100_000], [100, 1_000_000]], "published": [100, 100_000]},
    "big": {"sizes": [[200, 120], [2_000, 120], [20_000, 120]], "published": [20_000, 120]},
    "bndbuffer": {"sizes": [[50, 40, 40, 100, 25, 25], [50, 40, 40, 1_000, 25, 25]],
                  "published": [50, 40, 40, 1_000, 25, 25]},
    "idle": {"sizes": [[1_000], [10_000], [100_000]], "published": [100_000]},
    "token_streams": {"sizes": [[8, 200_000], [64, 25_000], [512, 3_000]], "published": [64, 25_000]},
    "token_push": {"sizes": [[8, 1_000, 1000], [64, 1_000, 1000], [512, 1_000, 1000]],
                   "published": [64, 1_000, 1000]},
}
ONLY = {"token_streams": ["weir", "asio"], "token_push": ["weir", "asio"]}  # CAF has no such streams
LONG = [100, 100, 1000, 4, 1]  # two minutes a run, with all cores whatever --threads says


def cases(args):
    for name in args.programs or PROGRAMS:
        program = PROGRAMS[name]
        sizes = {"all": program["sizes"], "published": [program["published"]],
                 "small": program["sizes"][:2]}[args.sizes]
        for params in sizes:
            if args.params and params != args.params:
                continue
            for threads in args.threads:
                if params == LONG and threads != max(args.threads):
                    continue
                yield name, params, threads


def peers_of(name, bin_dir):
    for peer in ONLY.get(name, PEERS):
        if (bin_dir / f"bench_actors_{peer}").exists():
            yield peer


def run_one(bin_dir, peer, name, params, threads):
    command = [str(bin_dir / f"bench_actors_{peer}"), name, f"--threads={threads}", *map(str, params)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return json.loads(done.stdout)


def measure(args):
    bin_dir, out = Path(args.bin), Path(args.out)
    for peer in PEERS:
        if not (bin_dir / f"bench_actors_{peer}").exists():
            print(f"{NAMES[peer]} is left out: bench_actors_{peer} was not built", file=sys.stderr)
    kept = json.loads(out.read_text())["runs"] if out.exists() and not args.fresh else []
    for repetition in range(args.repeat):
        for name, params, threads in cases(args):
            peers = list(peers_of(name, bin_dir))
            turn = repetition % len(peers)
            for peer in peers[turn:] + peers[:turn]:
                result = run_one(bin_dir, peer, name, params, threads)
                kept.append(result)
                print(f"{name} {params} {threads} thread(s) {peer}: {result['seconds']:.4f} s", file=sys.stderr)
    out.write_text(json.dumps({"machine": machine(), "runs": kept}, indent=0) + "\n")


def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    return {"cpu": model, "cores": os.cpu_count(), "kernel": platform.release()}


def grouped(runs):
    """{(program, params, threads): {peer: [runs]}}, in the order of PROGRAMS."""
    groups = {}
    for name, program in PROGRAMS.items():
        for params in program["sizes"]:
            for threads in sorted({r["threads"] for r in runs}):
                found = {}
                for r in runs:
                    if (r["program"], r["params"], r["threads"]) == (name, params, threads):
                        found.setdefault(r["impl"], []).append(r)
                if found:
                    groups[name, tuple(params), threads] = found
    return groups


def median(runs, field):
    return statistics.median(r[field] for r in runs)


def weight(runs):
    """Peak memory; for idle actors and where a program weighed itself, what one operation adds to the process."""
    if "weighed_rss_bytes" in runs[0]:
        return statistics.median((r["weighed_rss_bytes"] - r["base_rss_bytes"]) / r["ops"] for r in runs)
    return median(runs, "peak_rss_bytes")


def seconds(runs):
    times = sorted(r["seconds"] for r in runs)
    m = statistics.median(times)
    unit, scale = ("s", 1) if m >= 1 else ("ms", 1e3)
    text = f"{m * scale:.3g} {unit}"
    if len(times) > 1:
        text += f" ({times[0] * scale:.3g}–{times[-1] * scale:.3g})"
    return text


def size(runs):
    value = weight(runs)
    return f"{value:.0f} B each" if "weighed_rss_bytes" in runs[0] else f"{value / 2**20:.1f} MB"


def table(args):
    groups = grouped(json.loads(Path(args.file).read_text())["runs"])
    print("| program | size | threads | weir | CAF 0.17 | bare Asio | CAF / weir | memory: weir | CAF | Asio |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for (name, params, threads), peers in groups.items():
        cells = [name, " ".join(map(str, params)), str(threads)]
        cells += [seconds(peers[p]) if p in peers else "–" for p in PEERS]
        ratio = "–"
        if "caf" in peers and "weir" in peers:
            ratio = f"{median(peers['caf'], 'seconds') / median(peers['weir'], 'seconds'):.2f}"
        cells += [ratio] + [size(peers[p]) if p in peers else "–" for p in PEERS]
        print("| " + " | ".join(cells) + " |")


def curves(args):
    groups = grouped(json.loads(Path(args.file).read_text())["runs"])
    directory = Path(args.directory)
    time, memory = {}, {}
    for (name, params, threads), peers in groups.items():
        title = name
        if name == "mixed_case":
            title += ", with factorising" if params[4] else ", rings alone"
        for peer, runs in peers.items():
            x = runs[0]["ops"]
            if name.startswith("token"):
                x = params[0]
            unit = "streams" if name.startswith("token") else runs[0]["operation"] + "s"
            line = (peer, threads)
            at = time.setdefault((title, unit, "ns / " + runs[0]["operation"]), {})
            at.setdefault(line, []).append((x, median(runs, "seconds") / runs[0]["ops"] * 1e9))
            if name in ("actor_creation", "mailbox_performance", "mixed_case", "idle"):
                each = "weighed_rss_bytes" in runs[0]
                at = memory.setdefault((title, unit, "B / actor" if each else "MB, peak"), {})
                at.setdefault(line, []).append((x, weight(runs) / (1 if each else 2**20)))
    for stem, panels in (("actors-time", time), ("actors-memory", memory)):
        (directory / f"{stem}.svg").write_text(draw.page(panels, NAMES))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    m = verbs.add_parser("measure")
    m.add_argument("programs", nargs="*", choices=[*PROGRAMS, []], metavar="PROGRAM")
    m.add_argument("--repeat", type=int, default=3)
    m.add_argument("--threads", type=lambda s: [int(n) for n in s.split(",")], default=[1, os.cpu_count()])
    m.add_argument("--sizes", choices=["small", "all", "published"], default="all")
    m.add_argument("--params", type=lambda s: [int(n) for n in s.split(",")], help="one size alone")
    m.add_argument("--bin", default=ROOT / "build/release/tests/bench/actors")
    m.add_argument("--out", default=ROOT / "build/release/bench_actors.json")
    m.add_argument("--fresh", action="store_true", help="forget what FILE holds")
    m.set_defaults(do=measure)
    t = verbs.add_parser("table")
    t.add_argument("file")
    t.set_defaults(do=table)
    d = verbs.add_parser("draw")
    d.add_argument("file")
    d.add_argument("directory")
    d.set_defaults(do=curves)
    args = parser.parse_args()
    args.do(args)


main()
