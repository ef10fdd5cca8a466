"""Writes the held-out prompts: request lines for `weir generate --batch`, and beside them what a right answer is.

    heldout/questions.jsonl  questions with one right answer, greedy
    heldout/stories.jsonl    a thousand stories at temperature 0.8
    heldout/answers.jsonl    id -> task, rule, answer
"""
import json
import random
import sys

import mixture
from settings import HELDOUT_SEED, HERE

EACH = 150
STORIES = 1000
FOLDER = HERE / "heldout"
QUESTIONS = ["addition", "subtraction", "word problems", "three terms", "sorting numbers", "sorting words", "reversing lists", "counting", "counting up", "comparing", "spelling backwards", "spelling", "letters",
             "days", "months", "dates", "weekdays of dates", "lists", "lists by letter", "kinds", "reading", "story questions", "JSON", "system prompt", "turns", "accents", "not knowing"]
ACCENTS = ("reading", "JSON", "turns", "system prompt")      # where names are copied: those of their answers that hold an accent
STORY_TASKS = ["stories"] * 6 + ["continuing"] * 2 + ["raw stories", "stories by rule"]


def sample(rng: random.Random, task: str):
    while True:
        s = mixture.TASKS[rng.choice(ACCENTS) if task == "accents" else task](rng, True)
        if s.check != "free" and (task != "accents" or not s.answer.isascii()):
            return s


def new_sample(rng: random.Random, task: str, asked: set):
    """One that was not asked yet, where a task has enough of them."""
    for _ in range(50):
        s = sample(rng, task)
        key = json.dumps(s.messages[:-1])
        if key not in asked:
            break
    asked.add(key)
    return s


def write() -> None:
    FOLDER.mkdir(exist_ok=True)
    rng = random.Random(HELDOUT_SEED)
    answers = []
    with open(FOLDER / "questions.jsonl", "w") as f:
        for task in QUESTIONS:
            asked: set = set()
            for i in range(EACH):
                s = new_sample(rng, task, asked)
                name = f"{task.replace(' ', '-')}-{i}"
                f.write(json.dumps({"id": name, "input": s.messages[:-1], "max_tokens": 256, "temperature": 0, "seed": i}) + "\n")
                answers.append({"id": name, "task": task, "check": s.check, "answer": s.answer, **({"expect": s.expect} if s.expect else {})})
            if len(asked) < EACH:
                print(f"{task}: {len(asked)} of {EACH} prompts differ", file=sys.stderr)
    with open(FOLDER / "stories.jsonl", "w") as f:
        for i in range(STORIES):
            task = STORY_TASKS[i % len(STORY_TASKS)]
            s = sample(rng, task)
            name = f"story-{i}"
            if s.text:
                words = s.text.split(" ")
                given = " ".join(words[:rng.randint(4, 30)])
            else:
                given = s.messages[:-1]
            f.write(json.dumps({"id": name, "input": given, "max_tokens": 1200, "temperature": 0.8, "seed": i}) + "\n")
            answers.append({"id": name, "task": task, "check": "story", "expect": s.expect})
    with open(FOLDER / "answers.jsonl", "w") as f:
        for line in answers:
            f.write(json.dumps(line) + "\n")
    print(f"{len(answers)} held-out prompts", file=sys.stderr)


if __name__ == "__main__":
    write()
