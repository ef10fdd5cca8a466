"""Reads result lines ({"id": …, "text": …, "finish_reason": …}) and prints the table of the model card.

    weir generate --model models/rill --batch models/make/heldout/questions.jsonl > results.jsonl
    weir generate --model models/rill --batch models/make/heldout/stories.jsonl >> results.jsonl
    python3 models/make/score.py results.jsonl [--show N]      (N wrong answers of each task)
"""
import collections
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from words.kinds import KINDS  # noqa: E402


def right_list(text: str, expect: dict) -> bool:
    """N different members of the kind, numbered or separated by commas."""
    if expect["numbered"]:
        items = []
        for i, line in enumerate(text.split("\n"), 1):
            if not line.startswith(f"{i}. "):
                return False
            items.append(line[len(f"{i}. "):])
    else:
        items = text.split(", ")
    members = set(KINDS[expect["kind"]])
    return len(items) == expect["n"] == len(set(items)) and all(x in members and x.startswith(expect.get("letter", "")) for x in items)


def right_json(text: str, expect: dict) -> bool:
    """The same values of the same types in the same order."""
    try:
        return json.dumps(json.loads(text)) == json.dumps(expect["value"])
    except ValueError:
        return False


def loops(text: str) -> bool:
    """Eight words in a row that come three times."""
    words = text.split()
    grams = collections.Counter(tuple(words[i:i + 8]) for i in range(len(words) - 7))
    return bool(grams) and max(grams.values()) >= 3


def judge(answer: dict, result: dict) -> bool:
    text, check = result["text"].strip(), answer["check"]
    if check == "list":
        return right_list(text, answer["expect"])
    if check == "json":
        return right_json(text, answer["expect"])
    if check == "unknown":
        return text.startswith("I don't know.")
    return text == answer["answer"]


def score(answers: list[dict], results: dict[str, dict], show: int = 0) -> dict[str, float]:
    tasks: dict[str, list[bool]] = collections.OrderedDict()
    stories = collections.Counter()
    wrong = collections.Counter()
    for a in answers:
        r = results.get(a["id"])
        if r is None:
            continue
        if a["check"] == "story":
            stories["all"] += 1
            stories["stopped"] += r["finish_reason"] == "stop"
            stories["looped"] += loops(r["text"])
            stories["kept to it"] += all(m in r["text"] for m in a["expect"].get("must", []))
            stories["words"] += len(r["text"].split())
            continue
        ok = judge(a, r)
        tasks.setdefault(a["task"], []).append(ok)
        if not ok and wrong[a["task"]] < show:
            wrong[a["task"]] += 1
            print(f"{a['id']}: wanted {a['answer']!r}, got {r['text']!r}", file=sys.stderr)
    table = {t: 100 * sum(v) / len(v) for t, v in tasks.items()}
    if stories["all"]:
        n = stories["all"]
        table |= {"stories: stop by themselves": 100 * stories["stopped"] / n, "stories: fall into a loop": 100 * stories["looped"] / n, "stories: name what was asked for": 100 * stories["kept to it"] / n, "stories: words on average": stories["words"] / n}
    return table


def main(arguments: list[str]) -> None:
    folder = Path(__file__).resolve().parent / "heldout"
    answers = [json.loads(line) for line in open(folder / "answers.jsonl")]
    show = int(arguments[arguments.index("--show") + 1]) if "--show" in arguments else 0
    results = {}
    for name in arguments:
        if name.endswith(".jsonl"):
            results |= {r["id"]: r for r in map(json.loads, open(name))}
    print("| held-out prompts | |\n|---|---|")
    for task, value in score(answers, results, show).items():
        print(f"| {task} | {value:.1f}{'' if 'words' in task and 'stories' in task else ' %'} |")


if __name__ == "__main__":
    main(sys.argv[1:])
