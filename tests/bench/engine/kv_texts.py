#!/usr/bin/env python3
"""Texts for bench_engine_kv_accuracy, of the program that made rill's corpus: what rill's training never saw.

    kv_texts.py text 60 > text            # 60 stories, each with its request
    kv_texts.py questions 200 > questions # a prompt a line, then a tab and the right answer; \\n is a newline

A question is about a text of several sentences on several people, behind eight other exchanges of the kind:
the answer stands in one sentence of the last of nine texts.
"""
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "models" / "make"))
import mixture  # noqa: E402


def chat(messages):
    return "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in messages)


def main(what, count):
    rng = random.Random(7)
    for _ in range(int(count)):
        if what == "text":
            sys.stdout.write(chat(mixture.TASKS["stories"](rng, True).messages))
            continue
        others = [m for _ in range(8) for m in mixture.TASKS["reading"](rng, False).messages]
        last = mixture.TASKS["reading"](rng, True).messages
        prompt = chat(others + last[:-1]) + "<|im_start|>assistant\n"
        print(prompt.replace("\n", "\\n") + "\t" + last[-1]["content"].replace("\n", "\\n"))


main(*sys.argv[1:])
