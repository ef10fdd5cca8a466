#!/usr/bin/env python3
"""report.py SINCE PRESET... - where the time of a test run went, and which room is over its budget.

SINCE is when the run began, in seconds since 1970. Read are the builds' .ninja_log, of which only what was
built since then counts, the tests.xml that ctest wrote, and tests/budget.txt. Time fails nothing: the exit
status is 0 whatever the figures are.
"""
import collections
import pathlib
import re
import sys
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
SLOWEST = 20

# A room's code and its tests are one room. The first pattern that an output's path matches names it.
ROOMS = [
    (r"weir_cuda\.dir", "cuda"),
    (r"^tests/CMakeFiles/test_(\w+)\.dir", None),
    (r"^tests/CMakeFiles/fuzz_|^tests/fuzz_", "fuzz"),
    (r"^tests/(?:CMakeFiles/)?(?:weir_test_|tutorial|models_|docs_)", "support"),
    (r"^tests/(stranger|walks|bench)/", None),
    (r"^net/(load|embed)/", None),
    (r"^(kernels|core|actors|net|apps)/", None),
    (r"^docs/(examples)/", None),
]


def room_of(output):
    for pattern, name in ROOMS:
        if found := re.search(pattern, output):
            return name or found[1]
    return "support"


def compiled(build, since):
    """Seconds of each room's compilation since then."""
    log = build / ".ninja_log"
    seconds, seen = collections.Counter(), set()
    for line in reversed(log.read_text().splitlines() if log.exists() else []):
        if line.startswith("#"):
            continue
        begun, ended, _, output, command = line.split("\t")
        path = build / output
        # An edge with several outputs has a line for each of them.
        if (begun, ended, command) in seen or not path.exists() or path.stat().st_mtime < since:
            continue
        seen.add((begun, ended, command))
        seconds[room_of(output)] += (int(ended) - int(begun)) / 1000
    return seconds


def tested(build, since):
    """(seconds, name) of each test since then."""
    results = build / "tests.xml"
    if not results.exists() or results.stat().st_mtime < since:
        return []
    cases = xml.etree.ElementTree.parse(results).getroot().iter("testcase")
    return [(float(case.get("time")), case.get("name")) for case in cases]


def budgets():
    """{(room, preset): (compile, test)}"""
    rows = {}
    for line in (ROOT / "tests" / "budget.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            room, preset, compile_s, test_s = line.split()
            rows[room, preset] = (float(compile_s), float(test_s))
    return rows


def report(since, presets):
    allowed, over, slowest = budgets(), [], []
    print(f"\n{'room':<12}" + "".join(f"{preset + ' compile':>17}{'test':>8}" for preset in presets))
    compile_s, test_s = {}, {}
    for preset in presets:
        build = ROOT / "build" / preset
        compile_s[preset], test_s[preset] = compiled(build, since), collections.Counter()
        for seconds, name in tested(build, since):
            test_s[preset][name.split(":")[0]] += seconds
            slowest.append((seconds, preset, name))
    rooms = sorted({room for by in (compile_s, test_s) for preset in presets for room in by[preset]})
    for room in rooms + ["all"]:
        line = f"{room:<12}"
        for preset in presets:
            for by, which in ((compile_s, 0), (test_s, 1)):
                spent = by[preset].total() if room == "all" else by[preset][room]
                line += f"{spent:>{8 if which else 17}.0f}"
                most = allowed.get((room, preset), (0, 0))[which]
                if room != "all" and spent > most:
                    over.append(f"{room}, {preset}, {'testing' if which else 'compiling'}: "
                                f"{spent:.0f} s of {most:.0f} s")
        print(line)
    print(f"\nthe {SLOWEST} slowest tests")
    for seconds, preset, name in sorted(slowest, reverse=True)[:SLOWEST]:
        print(f"{seconds:7.1f} s  {preset:<8}{name}")
    print("\nover their budgets (tests/budget.txt):" if over else "\nevery room is within its budget")
    for line in over:
        print(f"  {line}")


if __name__ == "__main__":
    report(float(sys.argv[1]), sys.argv[2:])
