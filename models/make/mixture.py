"""How much of what: the corpus as one endless, seeded stream of conversations."""
import random

from sample import Sample, turns
from tasks import arithmetic, dates, dialogue, extraction, lists, numbers, passages, small_talk, spelling, system, telling_stories

TASKS = {name: make for module in (arithmetic, numbers, spelling, dates, lists, small_talk, passages, extraction, system, dialogue, telling_stories) for name, make in module.TASKS.items()}

# Shares of documents, not of tokens: a story is as long as a dozen sums.
WEIGHTS = {
    "addition": 7, "subtraction": 8, "word problems": 5, "three terms": 3, "times tables": 1,
    "sorting numbers": 6, "sorting words": 4, "reversing lists": 2, "counting": 6, "counting up": 2, "comparing": 4,
    "spelling backwards": 7, "spelling": 4, "letters": 3,
    "days": 3, "months": 2, "dates": 5,
    "lists": 4, "lists by letter": 2, "kinds": 2,
    "small talk": 1, "not knowing": 3,
    "reading": 8, "JSON": 9, "system prompt": 10, "turns": 8,
    "stories": 7, "continuing": 3, "raw stories": 2, "story questions": 2.2, "several stories": 0.5, "stories by rule": 1.5,
}
_NAMES, _SHARES = list(WEIGHTS), list(WEIGHTS.values())
_SINGLE = [n for n in _NAMES if n not in ("turns", "system prompt", "several stories", "raw stories", "stories by rule", "story questions", "continuing")]


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
