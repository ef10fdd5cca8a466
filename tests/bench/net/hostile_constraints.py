#!/usr/bin/env python3
"""What hostile constraints do to other streams, and whether each ends within its time.

  tests/bench/net/hostile_constraints.py BUILD [--streams N] [--at-once N] [--pairs N] [--seconds N] [--plain]

Starts `weir serve` with the bundled model. `weir load` runs in pairs, alone and beside clients that send one
hostile constraint after another, each with a short limit of tokens. Prints JSON: the streams' gaps in both
cases, and how long each kind of constraint took to its answer. With --plain the same clients ask for no
constraint: the difference to a run without --plain is the price of the constraints alone.
"""
import argparse, collections, http.client, json, os, statistics, subprocess, tempfile, threading, time
from urllib.parse import urlparse

p = argparse.ArgumentParser()
p.add_argument("build")
p.add_argument("--streams", type=int, default=32)
p.add_argument("--at-once", type=int, default=8)
p.add_argument("--pairs", type=int, default=3)
p.add_argument("--seconds", type=float, default=10)
p.add_argument("--plain", action="store_true")
a = p.parse_args()


def nested(depth):
    s = {"type": "object", "properties": {"a": {"const": depth}}}
    for d in range(depth):
        s = {"oneOf": [s, {"type": "object", "properties": {f"k{d}": s}}]}
    return s


def bomb(n):
    defs = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(n)}
    defs[f"d{n}"] = {"type": "string"}
    return {"$ref": "#/$defs/d0", "$defs": defs}


deep = {"type": "integer"}
for _ in range(31):
    deep = {"type": "array", "items": deep}
large = "100,000 values"  # sent once: to send and parse so large a body in a row is a load of its own
hostile = {
    "oneOf to depth 12": {"json_schema": nested(12)},
    "$ref bomb": {"json_schema": bomb(60)},
    "$ref cycle": {"json_schema": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}},
    "counts of counts": {"regex": "([a-z]{1,100000}){1,100000}"},
    large: {"json_schema": {"enum": [f"{i:x}" for i in range(100000)]}},
    "(a|a)*": {"regex": "(a|a)*" * 40 + "b"},
    "ambiguous": {"grammar": 'root ::= root root | "a" | "aa" | [a-z]'},
    "deep arrays": {"json_schema": deep},
    "long pattern": {"json_schema": {"type": "string", "pattern": "(x+x+)+y", "maxLength": 1000000}},
    "nested stars": {"regex": "((((a*)*b*)*c*)*d*)*" * 10},
    "many letters apart": {"regex": "(.*a.{12}|.*b.{11}|.*c.{13})+"},
}
bodies = {k: json.dumps({"prompt": "x", "max_tokens": 12, **({} if a.plain else v)})
          for k, v in hostile.items()}

weir = os.path.join(a.build, "weir")
server = subprocess.Popen([weir, "serve", "--device", "cpu", "--listen", "127.0.0.1:0",
                           "--log-level", "warn"], stdout=subprocess.PIPE, text=True)
url = urlparse(server.stdout.readline().split()[2])
took, answers = collections.defaultdict(list), collections.defaultdict(collections.Counter)


def send(name):
    line = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
    began = time.perf_counter()
    line.request("POST", "/v1/completions", bodies[name], {"content-type": "application/json"})
    answer = line.getresponse()
    body = json.loads(answer.read())
    took[name].append((time.perf_counter() - began) * 1000)
    what = body["error"]["message"][:60] if answer.status != 200 else body["choices"][0]["finish_reason"]
    answers[name][f"{answer.status} {what}"] += 1


def pester(number, over):
    names = [name for name in hostile if name != large]
    for i in range(number, 1 << 30):
        if over.is_set():
            return
        send(names[i % len(names)])


def load():
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run([weir, "load", "--url", f"ws://{url.netloc}", "--streams", str(a.streams),
                        "--duration", str(a.seconds), "--warmup", "2", "--ramp", "1",
                        "--max-tokens", "100000", "--prompt-tokens", "4", "--json", out.name],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        return json.load(open(out.name))["figures"]


try:
    alone, beside = [], []
    for _ in range(a.pairs):
        alone.append(load())
        over = threading.Event()
        clients = [threading.Thread(target=pester, args=[i, over]) for i in range(a.at_once)]
        for c in clients:
            c.start()
        beside.append(load())
        over.set()
        for c in clients:
            c.join()
    send(large)
    gap = lambda runs: round(statistics.median(f["itl_ms"]["p99"] for f in runs), 2)
    print(json.dumps({
        "streams": a.streams, "at_once": a.at_once,
        "gap_p99_alone": gap(alone), "gap_p99_beside": gap(beside),
        "ratio": round(gap(beside) / gap(alone), 3),
        "took_ms": {k: [round(statistics.median(v)), round(max(v))] for k, v in took.items()},
        "answers": {k: dict(v) for k, v in answers.items()}}, indent=1))
finally:
    server.terminate()
    try:
        server.wait(5)
    except subprocess.TimeoutExpired:
        server.kill()
