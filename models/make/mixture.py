"""How much of what: the corpus as one endless, seeded stream of conversations."""
import random

from sample import Sample, turns
from tasks import arithmetic, dates, dialogue, extraction, lists, numbers, passages, small_talk, spelling, system, telling_stories, verses

TASKS = {name: make for module in (arithmetic, numbers, spelling, dates, lists, small_talk, passages, extraction, system, dialogue, telling_stories, verses) for name, make in module.TASKS.items()}

# Shares of documents, not of tokens: a story is as long as a dozen sums.
WEIGHTS = {
    "addition": 7, "subtraction": 8, "word problems": 5, "three terms": 3, "times tables": 1,
    "sorting numbers": 7, "sorting words": 5, "reversing lists": 5, "counting": 12, "counting up": 2, "comparing": 5,
    "spelling backwards": 13, "spelling": 6, "letters": 6, "both ways": 3,
    "days": 4, "months": 2.5, "dates": 8, "weekdays of dates": 8,
    "lists": 7, "lists by letter": 2, "kinds": 2.5,
    "small talk": 1.2, "not knowing": 6, "poems": 1.5, "jokes": 0.4, "opposites": 0.7, "plurals": 0.7,
    "reading": 17, "several questions": 13, "JSON": 11, "system prompt": 13, "turns": 10,
    "stories": 6.5, "continuing": 2.7, "raw stories": 2, "story questions": 3, "several stories": 0.5, "stories by rule": 1.6,
}
_NAMES, _SHARES = list(WEIGHTS), list(WEIGHTS.values())
_SINGLE = [n for n in _NAMES if n not in ("turns", "system prompt", "several stories", "raw stories", "stories by rule", "story questions", "continuing", "several questions")]


def document(rng: random.Random) -> Sample:
    """One training document. Some are a few unrelated exchanges in a row, some have a system prompt that asks for nothing special."""
    r = rng.random()
    if r < 0.12:
        parts = [TASKS[rng.choice(_SINGLE if rng.random() < 0.9 else _NAMES[:1])](rng, False) for _ in range(rng.choice((2, 2, 3, 4)))]
        sample = Sample("mixed", [m for p in parts for m in p.messages])
    else:
        sample = TASKS[rng.choices(_NAMES, _SHARES)[0]](rng, False)
    if sample.messages and sample.messages[0]["role"] != "system" and rng.random() < 0.15:
        sample.messages.insert(0, {"role": "system", "content": rng.choice(system.NEUTRAL)})
    return sample


def documents(seed: int, count: int):
    rng = random.Random(seed)
    for _ in range(count):
        yield document(rng)
