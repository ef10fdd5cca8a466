#!/usr/bin/env python3
"""Decoding and prompts on two threads of the CPU, beside llama.cpp, with quantised weights of one shape.

    beside_llama.py WEIR LLAMA_BENCH [--types=q8_0,q4_0] [--rounds=7] [--threads=2]

LLAMA_BENCH is llama.cpp's own benchmark, built on this machine (-DGGML_NATIVE=ON). The shape is tiny-110m:
weir makes its weights, and this script writes a GGUF file of the same shape and type for llama.cpp. All
matrices have the one type. The two programs alternate. Figures are medians over the rounds, and ratios are
medians of the ratios of each round.
"""
import argparse, json, os, statistics, struct, subprocess, tempfile
from pathlib import Path

VOCABULARY, HIDDEN, INNER, LAYERS, HEADS = 32_000, 768, 2_048, 12, 12
TYPES = {"f32": 0, "q4_0": 2, "q8_0": 8, "q4_k": 12, "q5_k": 13, "q6_k": 14}  # ggml's numbers
SIZES = {"f32": (1, 4), "q4_0": (32, 18), "q8_0": (32, 34), "q4_k": (256, 144), "q5_k": (256, 176),
         "q6_k": (256, 210)}  # weights and bytes of a block
SCALE = struct.pack("<e", 0.001)


def block(kind):
    """A block of random codes with small scales."""
    if kind == "f32":
        return struct.pack("<f", 1)
    rest = os.urandom(SIZES[kind][1])
    if kind == "q6_k":
        return rest[:-2] + SCALE
    scales = 2 if kind in ("q4_k", "q5_k") else 1
    return SCALE * scales + rest[2 * scales:]


def tensors(kind):
    """Names, dimensions (the fastest first) and types, in the order of the file."""
    yield "token_embd.weight", (HIDDEN, VOCABULARY), kind
    yield "output_norm.weight", (HIDDEN,), "f32"
    for i in range(LAYERS):
        for name in ("attn_norm", "ffn_norm"):
            yield f"blk.{i}.{name}.weight", (HIDDEN,), "f32"
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            yield f"blk.{i}.{name}.weight", (HIDDEN, HIDDEN), kind
        for name in ("ffn_gate", "ffn_up"):
            yield f"blk.{i}.{name}.weight", (HIDDEN, INNER), kind
        yield f"blk.{i}.ffn_down.weight", (INNER, HIDDEN), kind


def string(text):
    return struct.pack("<Q", len(text)) + text.encode()


def header(kind):
    whole = {"block_count": LAYERS, "context_length": 4_096, "embedding_length": HIDDEN,
             "vocab_size": VOCABULARY, "feed_forward_length": INNER, "attention.head_count": HEADS,
             "attention.head_count_kv": HEADS}
    pairs = [string("general.architecture") + struct.pack("<I", 8) + string("llama"),
             string("tokenizer.ggml.model") + struct.pack("<I", 8) + string("none"),
             string("general.quantization_version") + struct.pack("<II", 4, 2),
             string("llama.attention.layer_norm_rms_epsilon") + struct.pack("<If", 6, 1e-5)]
    pairs += [string(f"llama.{key}") + struct.pack("<II", 4, value) for key, value in whole.items()]
    entries, at = [], 0
    for name, dims, type_ in tensors(kind):
        entries.append(string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, TYPES[type_], at))
        at += (bytes_of(dims, type_) + 31) // 32 * 32
    return b"GGUF" + struct.pack("<IQQ", 3, len(entries), len(pairs)) + b"".join(pairs + entries)


def bytes_of(dims, kind):
    weights = 1
    for d in dims:
        weights *= d
    return weights // SIZES[kind][0] * SIZES[kind][1]


def write_gguf(path, kind):
    with open(path, "wb") as file:
        file.write(header(kind))
        for _, dims, type_ in tensors(kind):
            file.write(b"\0" * (-file.tell() % 32))
            some = b"".join(block(type_) for _ in range(768))
            size = bytes_of(dims, type_)
            file.write((some * (size // len(some) + 1))[:size])


def weir(program, kind, threads):
    made = json.loads(subprocess.check_output(
        [program, "bench", "engine", "--device", "cpu", "--threads", str(threads), "--dtype", kind,
         "--context", "1", "--tokens", "128", "--prefill", "512", "--repeat", "1", "--json"]))
    return {"decode": made["decode"]["tokens_per_s"], "prompt": made["prefill"]["tokens_per_s"],
            "limit": made["decode"]["limit_tokens_per_s"], "peak": made["prefill"]["share_of_peak"]}


def llama(program, path, threads):
    made = json.loads(subprocess.check_output(
        [program, "-m", path, "-t", str(threads), "-n", "128", "-p", "512", "-r", "1", "-o", "json"],
        stderr=subprocess.DEVNULL))
    return {"decode" if each["n_gen"] else "prompt": each["avg_ts"] for each in made}


def row(kind, rounds):
    """A line of the table. `rounds`: pairs of figures, of weir and of llama.cpp."""
    def median(figure):
        return statistics.median(figure(ours, theirs) for ours, theirs in rounds)

    cells = [kind]
    shares = {"decode": lambda w, _: w["decode"] / w["limit"], "prompt": lambda w, _: w["peak"]}
    for what, share in shares.items():
        cells += [f"{median(lambda w, _: w[what]):,.0f}", f"{median(lambda _, l: l[what]):,.0f}",
                  f"{median(lambda w, l: w[what] / l[what]):.2f}", f"{100 * median(share):.0f} %"]
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weir")
    parser.add_argument("llama_bench")
    parser.add_argument("--types", default="q8_0,q4_0")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    o = parser.parse_args()
    print("| type | decode, weir | llama.cpp | ratio | of the read limit "
          "| prompt of 512, weir | llama.cpp | ratio | of the multipliers |\n" + "|---" * 9 + "|")
    with tempfile.TemporaryDirectory() as folder:
        for kind in o.types.split(","):
            path = Path(folder) / f"{kind}.gguf"
            write_gguf(path, kind)
            rounds = [(weir(o.weir, kind, o.threads), llama(o.llama_bench, path, o.threads))
                      for _ in range(o.rounds)]
            print(row(kind, rounds), flush=True)
            path.unlink()


if __name__ == "__main__":
    main()
