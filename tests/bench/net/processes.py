"""Processes that benchmarks of a fleet start and watch."""
import atexit, json, os, shutil, subprocess, tempfile, time


# `at`: the beginning of a command that runs elsewhere (boxes.py).


def ready(weir, words, at=()):
    """A process of weir from its line «ready» on, and the address or name that the line has."""
    child = subprocess.Popen([*at, weir, *words, "--log-level", "error"], stdout=subprocess.PIPE, text=True)
    for line in child.stdout:
        if "ready" in line:
            return child, line.split()[-1] if words[0] == "worker" else line.split()[2]
    raise SystemExit(f"weir {words[0]} ended with {child.wait()}")


def nats(words=("-a", "127.0.0.1", "-p", "-1"), environment={}, at=()):
    """A server of NATS and its port."""
    folder = tempfile.mkdtemp(prefix="weir-fleet-")
    atexit.register(shutil.rmtree, folder)
    child = subprocess.Popen([*at, "nats-server", *words, "--ports_file_dir", folder],
                             stderr=subprocess.DEVNULL, env={**os.environ, **environment})
    file = os.path.join(folder, f"nats-server_{child.pid}.ports")
    while not (os.path.exists(file) and os.path.getsize(file)):
        time.sleep(0.01)
    time.sleep(0.1)
    return child, int(next(iter(json.load(open(file)).values()))[0].rsplit(":", 1)[1])


def threads_cpu_s(pid):
    """Of each thread, by name and to the nanosecond."""
    out = {}
    for t in os.listdir(f"/proc/{pid}/task"):
        name = open(f"/proc/{pid}/task/{t}/comm").read().strip()
        out[name] = out.get(name, 0) + int(open(f"/proc/{pid}/task/{t}/schedstat").read().split()[0]) / 1e9
    return out


def cpu_s(pid):
    return sum(threads_cpu_s(pid).values())


def load(weir, url, streams, seconds, tokens, ramp_s, threads=0, at=()):
    """The figures of `weir load`: so many streams of so many tokens, which begin within `ramp_s`."""
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run([*at, weir, "load", "--url", url.replace("http", "ws"), "--streams", str(streams),
                        "--duration", str(seconds), "--warmup", str(ramp_s), "--ramp", str(ramp_s),
                        "--prompt-tokens", "4", "--max-tokens", str(tokens), "--threads", str(threads),
                        "--json", out.name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        f = json.load(open(out.name))["figures"]
        if f["errors"] or f["refused"]:
            raise SystemExit(f"{f['errors']} errors, {f['refused']} refused")
        return f
