"""Makes rill and rill-draft from nothing: `python3 models/make/make.py all`. Needs PyTorch, tokenizers, safetensors, transformers and one GPU.

Steps, each of which can be run alone: heldout tokenizer training export evaluate reference; `heldout finish evaluate reference`
takes the stored rill up again after a change of the corpus; `look [TASK] [N]` prints samples.
"""
import random
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import settings  # noqa: E402


def writer(first: str, last: str) -> subprocess.Popen:
    """The corpus of these runs is written while the models learn from it."""
    import shards
    return subprocess.Popen([sys.executable, shards.__file__, str(shards.span(first)[0]), str(shards.span(last)[1])])


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
        elif step == "training":
            corpus = writer("rill", "rill-draft")
            main(["rill", "draft"])
            corpus.wait()
        elif step == "finish":
            import export
            import train
            corpus = writer("finish", "finish")
            train.train("rill", finish=True)
            corpus.wait()
            export.export("rill")
        elif step == "rill":
            import train
            train.train("rill")
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
