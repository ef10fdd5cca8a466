"""Makes rill and rill-draft from nothing: `python3 models/make/make.py all`. Needs PyTorch, tokenizers, safetensors, transformers and one GPU.

Steps, each of which can be run alone: heldout tokenizer shards rill finish draft export evaluate reference; `look [TASK] [N]` prints samples.
"""
import random
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import settings  # noqa: E402


def shards_needed() -> int:
    steps = settings.STEPS
    return -(-steps["rill"] * settings.ROWS // settings.SHARD_ROWS) - (-max(steps["finish"], steps["rill-draft"]) * settings.ROWS // settings.SHARD_ROWS)


def look(task: str = "", count: str = "5") -> None:
    import mixture
    rng = random.Random()
    for _ in range(int(count)):
        s = mixture.TASKS[task](rng, False) if task else mixture.document(rng)
        print(f"--- {s.task}\n" + (s.text or "\n".join(f"{m['role']}: {m['content']}" for m in s.messages)))


def main(steps: list[str]) -> None:
    if steps[0] == "look":
        return look(*steps[1:])
    if steps == ["all"]:
        steps = ["heldout", "tokenizer", "training", "export", "evaluate", "reference"]
    for step in steps:
        if step == "heldout":
            import heldout
            heldout.write()
        elif step == "tokenizer":
            import tokenizer
            tokenizer.train()
        elif step == "shards":
            import shards
            shards.make_all(0, shards_needed())
        elif step == "training":                       # the corpus is written while rill learns from it
            writer = subprocess.Popen([sys.executable, __file__, "shards"])
            main(["rill", "finish", "draft"])
            writer.wait()
        elif step == "rill":
            import train
            train.train("rill")
        elif step == "finish":
            import train
            train.train("rill", finish=True)
        elif step == "draft":
            import train
            train.train("rill-draft", teacher="rill")
        elif step == "export":
            import export
            for name in settings.SHAPES:
                export.export(name)
        elif step == "evaluate":
            import evaluate
            evaluate.evaluate()
        elif step == "reference":
            import reference
            for name in settings.SHAPES:
                reference.write(name)
        else:
            raise SystemExit(f"unknown step: {step}")


if __name__ == "__main__":
    main(sys.argv[1:] or ["all"])
