#!/usr/bin/env python3
"""A directory with an EXL2 model of the shape of Llama 3.1 8B and random codes, for speed.

    random_exl2.py DIRECTORY [--layers 32]        (needs numpy)
    weir bench engine --device cuda --model DIRECTORY

Widths of codes are those that ExLlamaV2 chooses from for 4 bits a weight. In attention and in gate and up, a
layer in four has a tenth of its inputs in 5 bits and the rest in 4, another has a tenth in 4 and the rest in
3, and two have 4. Down has a twentieth of its inputs in 8 bits and the rest in 4; the head has 15 % in 8 bits
and the rest in 6. Inputs are shuffled. q, k and v share an order, and so do gate and up, as in real files.
"""
import argparse, json
from pathlib import Path
import numpy as np

VOCABULARY, HIDDEN, INNER, KEYS = 128_256, 4_096, 14_336, 1_024
MIXES = [[(128, 4, 1.0)], [(128, 5, 0.1), (128, 4, 0.9)], [(128, 4, 1.0)], [(128, 4, 0.1), (128, 3, 0.9)]]
DOWN, HEAD = [(32, 8, 0.05), (128, 4, 0.95)], [(128, 8, 0.15), (128, 6, 0.85)]
random = np.random.default_rng(1)


def groups_of(mix, inputs):
    """(bits, inputs) of each group, with the widest in front."""
    groups, left = [], inputs
    for size, bits, share in mix:
        count = round(inputs * share / size) if (size, bits, share) != mix[-1] else -(-left // size)
        for _ in range(count):
            groups.append((bits, min(size, left)))
            left -= groups[-1][1]
    return groups


def linear(name, outputs, inputs, mix, order):
    groups, table, words = groups_of(mix, inputs), [], 0
    for bits, size in groups:
        table += [bits, words]
        words += size * bits // 32
    yield f"{name}.q_weight", "I32", random.integers(0, 2**32, (words, outputs), np.uint32)
    yield f"{name}.q_groups", "I16", np.array(table, np.uint16)
    yield f"{name}.q_scale", "I32", random.integers(0, 2**32, (len(groups), outputs // 8), np.uint32)
    largest = 256 * 0.05 / 256 / 2.0 ** (np.array([bits for bits, _ in groups]) - 1)
    yield f"{name}.q_scale_max", "F16", largest.astype(np.float16)
    yield f"{name}.q_invperm", "I32", order.astype(np.uint32)


def tensors(layers):
    def half(rows, columns):
        return (random.integers(0, 2**16, (rows, columns), np.uint16) & 0x83FF) | 0x2400

    def ones():
        return np.ones(HIDDEN, np.float16)

    yield "model.embed_tokens.weight", "F16", half(VOCABULARY, HIDDEN)
    for i in range(layers):
        mix, at = MIXES[i % 4], f"model.layers.{i}"
        first, second = random.permutation(HIDDEN), random.permutation(HIDDEN)
        for name, rows in (("q", HIDDEN), ("k", KEYS), ("v", KEYS)):
            yield from linear(f"{at}.self_attn.{name}_proj", rows, HIDDEN, mix, first)
        yield from linear(f"{at}.self_attn.o_proj", HIDDEN, HIDDEN, mix, random.permutation(HIDDEN))
        for name in ("gate", "up"):
            yield from linear(f"{at}.mlp.{name}_proj", INNER, HIDDEN, mix, second)
        yield from linear(f"{at}.mlp.down_proj", HIDDEN, INNER, DOWN, random.permutation(INNER))
        yield f"{at}.input_layernorm.weight", "F16", ones()
        yield f"{at}.post_attention_layernorm.weight", "F16", ones()
    yield "model.norm.weight", "F16", ones()
    yield from linear("lm_head", VOCABULARY, HIDDEN, HEAD, random.permutation(HIDDEN))


def write(to, layers):
    header, at, room = {}, 0, 1 << 20
    with (to / "model.safetensors").open("wb") as f:
        f.seek(8 + room)
        for name, kind, values in tensors(layers):
            f.write(values.tobytes())
            shape, end = list(values.shape), at + values.nbytes
            header[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, end]}
            at = end
        f.seek(0)
        f.write(room.to_bytes(8, "little") + json.dumps(header).encode().ljust(room))


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("directory", type=Path)
    options.add_argument("--layers", type=int, default=32)
    o = options.parse_args()
    o.directory.mkdir(parents=True, exist_ok=True)
    (o.directory / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
        "vocab_size": VOCABULARY, "hidden_size": HIDDEN, "intermediate_size": INNER,
        "num_hidden_layers": o.layers, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
        "max_position_embeddings": 8_192, "rms_norm_eps": 1e-5, "rope_theta": 500_000.0,
        "tie_word_embeddings": False, "torch_dtype": "float16", "bos_token_id": 1, "eos_token_id": 2,
        "quantization_config": {"quant_method": "exl2", "version": "0.2.4", "bits": 4.0, "head_bits": 6}}))
    write(o.directory, o.layers)


if __name__ == "__main__":
    main()
