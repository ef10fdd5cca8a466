"""Packs documents into rows of the context length, many processes at once; a row never holds a part of a document.

A shard is three arrays of [rows, context]: token ids, the number of the document within its row (attention stays inside it),
and the weight of each token as something to be predicted. Shard i depends on the seed and on i alone.
"""
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import mixture
from settings import CONTEXT, ROWS, SEED, SHARD_ROWS, STEPS, TASK_WEIGHT, WORK, WORKERS


def weight(length: int) -> int:
    return TASK_WEIGHT if length <= 60 else 1


def _path(index: int) -> Path:
    return WORK / "shards" / f"{index:05d}.npz"


def span(run: str) -> tuple[int, int]:
    """The shards of a run. Runs share none, so every document is read once."""
    first = 0
    for name, steps in STEPS.items():
        last = first - (-steps * ROWS // SHARD_ROWS)
        if name == run:
            return first, last
        first = last
    raise KeyError(run)


def make(index: int) -> int:
    """Writes one shard; returns its number of documents."""
    import random

    import numpy as np
    from tokenizer import Encoder
    os.nice(5)
    encoder = Encoder()
    rng = random.Random(SEED * 100_000 + index)
    tokens = np.zeros((SHARD_ROWS, CONTEXT), np.uint16)
    owner = np.full((SHARD_ROWS, CONTEXT), 255, np.uint8)
    weights = np.zeros((SHARD_ROWS, CONTEXT), np.uint8)
    waiting: list[tuple[list[int], list[int]]] = []
    count = 0
    for row in range(SHARD_ROWS):
        at = number = 0
        while number < 250:
            if len(waiting) < 200:
                waiting += [d for d in encoder.encode([mixture.document(rng) for _ in range(400)], weight) if len(d[0]) <= CONTEXT]
                rng.shuffle(waiting)
            room = CONTEXT - at
            fit = next((i for i in range(len(waiting) - 1, -1, -1) if len(waiting[i][0]) <= room), None)
            if fit is None:
                break
            ids, w = waiting.pop(fit)
            tokens[row, at:at + len(ids)], weights[row, at:at + len(ids)], owner[row, at:at + len(ids)] = ids, w, number
            at += len(ids)
            number += 1
        count += number
    _path(index).parent.mkdir(parents=True, exist_ok=True)
    temporary = _path(index).with_suffix(".tmp.npz")
    np.savez(temporary, tokens=tokens, owner=owner, weights=weights)
    os.rename(temporary, _path(index))
    return count


def make_all(first: int, last: int) -> None:
    started = time.time()
    done = 0
    with ProcessPoolExecutor(WORKERS) as pool:
        for i, n in enumerate(pool.map(make, range(first, last))):
            done += n
            print(f"shard {first + i + 1}/{last}, {done} documents, {(i + 1) * SHARD_ROWS * CONTEXT / 1e6:.0f} M tokens in {time.time() - started:.0f} s", file=sys.stderr, flush=True)


def read(index: int):
    """The arrays of a shard; waits until somebody has written it."""
    import numpy as np
    waited = time.time()
    while not _path(index).exists():
        if time.time() - waited > 300:
            raise TimeoutError(f"no shard {index} after five minutes")
        time.sleep(0.1)
    if time.time() - waited > 1:
        print(f"waited {time.time() - waited:.1f} s for shard {index}", file=sys.stderr, flush=True)
    with np.load(_path(index)) as z:
        return z["tokens"], z["owner"], z["weights"]


if __name__ == "__main__":
    make_all(int(sys.argv[1]), int(sys.argv[2]))
