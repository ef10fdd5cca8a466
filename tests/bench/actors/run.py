#!/usr/bin/env python3
"""Runs the actor benchmarks of weir, CAF and bare Asio side by side, and says what came out.

  run.py [measure] [PROGRAM...] [--repeat=N] [--threads=1,2] [--sizes=small|published|all] [--add] ...
  run.py table FILE [--published]     Markdown: medians, with the spread; time and peak memory
  run.py draw FILE DIR                curves, as SVG

Peers alternate within each repetition, so that what the machine does meanwhile falls on all of them. With
--add a long measurement may be taken in pieces. A peer that was not built is left out.
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
NEWEST = "weir, newest first"  # the same actors on another executor: see weir/newest_first.h
PEERS = {"weir": ["weir"], NEWEST: ["weir", "--newest-first"], "caf": ["caf"], "asio": ["asio"]}
NAMES = {"weir": "weir", NEWEST: NEWEST, "caf": "CAF 0.17", "asio": "bare Asio"}

# Each program at several sizes, smallest first; the published ones are those its authors chose (for our own,
# what an engine is like).
SIZES = {
    "actor_creation": [[12], [14], [16], [18], [20]],
    "mailbox_performance": [[100, 1_000], [100, 10_000], [100, 100_000], [100, 1_000_000]],
    "mixed_case": [[10, 100, 1000, 4, 0], [30, 100, 1000, 4, 0], [100, 100, 1000, 4, 0],
                   [5, 100, 1000, 4, 1], [100, 100, 1000, 4, 1]],
    "pingpong": [[4_000], [40_000], [400_000]],
    "count": [[10_000], [100_000], [1_000_000], [10_000_000]],
    "fjthrput": [[1_000, 60], [10_000, 60], [100_000, 60]],
    "threadring": [[100, 10_000], [100, 100_000], [100, 1_000_000]],
    "big": [[200, 120], [2_000, 120], [20_000, 120]],
    "bndbuffer": [[50, 40, 40, 100, 25, 25], [50, 40, 40, 1_000, 25, 25]],
    "idle": [[1_000], [10_000], [100_000]],
    "token_streams": [[8, 200_000], [64, 25_000], [512, 3_000]],
    "token_push": [[8, 1_000, 1000], [64, 1_000, 1000], [512, 1_000, 1000]],
}
PUBLISHED = {
    "actor_creation": [[20]],
    "mailbox_performance": [[100, 1_000_000]],
    "mixed_case": [[100, 100, 1000, 4, 0], [100, 100, 1000, 4, 1]],
    "pingpong": [[40_000]],
    "count": [[1_000_000]],
    "fjthrput": [[10_000, 60]],
    "threadring": [[100, 100_000]],
    "big": [[20_000, 120]],
    "bndbuffer": [[50, 40, 40, 1_000, 25, 25]],
    "idle": [[100_000]],
    "token_streams": [[64, 25_000], [512, 3_000]],
    "token_push": [[64, 1_000, 1000], [512, 1_000, 1000]],
}
WITHOUT = {"caf": ["token_streams", "token_push"], NEWEST: set(SIZES) - {"actor_creation", "mixed_case"}}
LONG = [100, 100, 1000, 4, 1]  # two minutes a run, with all cores whatever --threads says


def cases(args):
    for name in args.programs or SIZES:
        sizes = {"all": SIZES[name], "published": PUBLISHED[name], "small": SIZES[name][:2]}[args.sizes]
        for params in sizes:
            if args.params and params != args.params:
                continue
            for threads in args.threads:
                if params != LONG or threads == max(args.threads):
                    yield name, params, threads


def executable(bin_dir, peer):
    return bin_dir / f"bench_actors_{PEERS[peer][0]}"


def run_one(bin_dir, peer, name, params, threads):
    options = [f"--threads={threads}", *PEERS[peer][1:]]
    command = [str(executable(bin_dir, peer)), name, *options, *map(str, params)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return json.loads(done.stdout)


def measure(args):
    bin_dir, out = Path(args.bin), Path(args.out)
    asked = args.peers or PEERS
    built = [p for p in asked if executable(bin_dir, p).exists()]
    for peer in set(asked) - set(built):
        print(f"{NAMES[peer]} is left out: {executable(bin_dir, peer).name} was not built", file=sys.stderr)
    runs = json.loads(out.read_text())["runs"] if args.add and out.exists() else []
    for repetition in range(args.repeat):
        for name, params, threads in cases(args):
            peers = [p for p in built if name not in WITHOUT.get(p, [])]
            first = repetition % len(peers) if peers else 0
            for peer in peers[first:] + peers[:first]:
                runs.append(run_one(bin_dir, peer, name, params, threads))
                took = runs[-1]["seconds"]
                print(f"{name} {params} {threads} thread(s) {peer}: {took:.4f} s", file=sys.stderr)
            out.write_text(json.dumps({"machine": machine(), "runs": runs}, indent=0) + "\n")
    print_table(runs, published=False)


def machine():
    models = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    cpu = models[0] if models else platform.machine()
    return {"cpu": cpu, "cores": os.cpu_count(), "kernel": platform.release()}


def grouped(runs):
    """{(program, params, threads): {peer: [runs]}}, in the order of SIZES."""
    groups = {}
    for name, sizes in SIZES.items():
        for params in sizes:
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
    """Peak memory; for a program that weighed itself while its actors were idle, what each of them added."""
    if "weighed_rss_bytes" in runs[0]:
        return statistics.median((r["weighed_rss_bytes"] - r["base_rss_bytes"]) / r["ops"] for r in runs)
    return median(runs, "peak_rss_bytes")


def cell(runs):
    if not runs:
        return "–"
    times = sorted(r["seconds"] for r in runs)
    unit, scale = ("s", 1) if times[-1] >= 1 else ("ms", 1e3)
    text = f"{statistics.median(times) * scale:.3g} {unit}"
    if len(times) > 1:
        text += f" ({times[0] * scale:.3g}–{times[-1] * scale:.3g})"
    value = weight(runs)
    each = "weighed_rss_bytes" in runs[0]
    return text + (f" · {value:.0f} B each" if each else f" · {value / 1e6:.1f} MB")


def print_table(runs, published):
    print("| program | threads | " + " | ".join(NAMES.values()) + " | CAF ÷ weir |")
    print("|---|---|" + "---|" * (len(NAMES) + 1))
    for (name, params, threads), peers in grouped(runs).items():
        if published and list(params) not in PUBLISHED[name]:
            continue
        ratio = "–"
        if "caf" in peers and "weir" in peers:
            ratio = f"{median(peers['caf'], 'seconds') / median(peers['weir'], 'seconds'):.2f}"
        title = " ".join([name, *map(str, params)])
        print(" | ".join([f"| {title}", str(threads), *(cell(peers.get(p)) for p in PEERS), f"{ratio} |"]))


def table(args):
    print_table(json.loads(Path(args.file).read_text())["runs"], args.published)


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
            unit = "passes" if name == "threadring" else runs[0]["operation"] + "s"
            if name.startswith("token"):
                x, unit = params[0], "streams"
            line = (peer, threads)
            at = time.setdefault((title, unit, "ns / " + runs[0]["operation"]), {})
            at.setdefault(line, []).append((x, median(runs, "seconds") / runs[0]["ops"] * 1e9))
            if name in ("actor_creation", "mailbox_performance", "mixed_case", "idle"):
                each = "weighed_rss_bytes" in runs[0]
                at = memory.setdefault((title, unit, "B / actor" if each else "MB, peak"), {})
                at.setdefault(line, []).append((x, weight(runs) / (1 if each else 1e6)))
    for stem, panels in (("actors-time", time), ("actors-memory", memory)):
        (directory / f"{stem}.svg").write_text(draw.page(panels, NAMES))


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    verbs = parser.add_subparsers(required=True)
    m = verbs.add_parser("measure")
    m.add_argument("programs", nargs="*", choices=[*SIZES, []], metavar="PROGRAM")
    m.add_argument("--repeat", type=int, default=3)
    m.add_argument("--threads", type=lambda s: [int(n) for n in s.split(",")], default=[1, os.cpu_count()])
    m.add_argument("--sizes", choices=["small", "all", "published"], default="all")
    m.add_argument("--params", type=lambda s: [int(n) for n in s.split(",")], help="one size alone")
    m.add_argument("--peers", type=lambda s: s.split(";"), help=f"some of them: {';'.join(PEERS)}")
    m.add_argument("--bin", default=ROOT / "build/release/tests/bench/actors")
    m.add_argument("--out", default=ROOT / "build/release/bench_actors.json")
    m.add_argument("--add", action="store_true", help="to what FILE holds already")
    m.set_defaults(do=measure)
    t = verbs.add_parser("table")
    t.add_argument("file")
    t.add_argument("--published", action="store_true", help="the authors' sizes alone")
    t.set_defaults(do=table)
    d = verbs.add_parser("draw")
    d.add_argument("file")
    d.add_argument("directory")
    d.set_defaults(do=curves)
    given = sys.argv[1:]
    if not {"table", "draw", "-h", "--help"} & set(given[:1]):
        given = ["measure", *(given[1:] if given[:1] == ["measure"] else given)]
    args = parser.parse_args(given)
    args.do(args)


main()
