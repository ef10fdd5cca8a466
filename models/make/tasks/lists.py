"""N things of a kind, none twice.

A kind is told in its own order, from anywhere and around, with small gaps: then what comes next follows from the last thing
said, and nothing has to be remembered to keep from saying it twice.
"""
import random

from grammar import fill, join, number_word, pick
from sample import Sample, loosely, turns
from split import held
from words.kinds import DAYS, KINDS, MONTHS, SEASONS

NUMBERED = ["List {n} {k}.", "List {n} {k}.", "Give me a list of {n} {k}.", "Make a list of {n} {k}.", "Write a list of {n} {k}.", "I need a list of {n} {k}.", "[Can|Could] you list {n} {k}?", "Please list {n} {k}.",
            "List {n} different {k}.", "A list of {n} {k}, please.", "Write down {n} {k}.", "[Can|Could] you make a list of {n} {k}?", "List {n} {k} for me.", "Show me a list of {n} {k}.", "{n} {k}"]
INLINE = ["Name {n} {k}.", "Name {n} {k}.", "Tell me {n} {k}.", "What are {n} {k}?", "[Can|Could] you name {n} {k}?", "Give me {n} {k}.", "Name {n} different {k}.", "[Can|Could] you think of {n} {k}?", "Say {n} {k}.",
          "I need the names of {n} {k}.", "Name {n} {k}, separated by commas.", "List {n} {k}, separated by commas.", "Which {n} {k} can you name?", "Give me {n} {k} separated by commas.", "What are {n} {k} you know?"]
ONE = ["Name one of the {k}.", "Give me an example of {k}.", "Tell me one example of {k}."]


def around(rng: random.Random, pool: list[str], n: int) -> list[str]:
    """n members of the pool in its order, from a random one on; what has a first one (the months, say) from there, without gaps."""
    at, spare = (0, 0) if pool in (MONTHS, DAYS, SEASONS) else (rng.randrange(len(pool)), len(pool) - n)
    out = []
    for _ in range(n):
        out.append(pool[at % len(pool)])
        gap = 0
        while gap < min(3, spare) and rng.random() < 0.5:
            gap += 1
        at, spare = at + 1 + gap, spare - gap
    return out


def of_a_kind(rng, want_held):
    while True:
        kind, pool = rng.choice(list(KINDS.items()))
        most = min(10, len(pool)) if pool is not MONTHS else 12
        n = rng.randint(2, rng.choice((5, most, most))) if most > 5 else rng.randint(2, most)
        if held("list", kind, n) == want_held:
            break
    items = around(rng, pool, n)
    numbered = rng.random() < 0.55
    said = str(n) if rng.random() < 0.45 else number_word(n)
    question = fill(rng, pick(rng, NUMBERED if numbered else INLINE), {"n": said, "k": kind})
    answer = "\n".join(f"{i}. {x}" for i, x in enumerate(items, 1)) if numbered else ", ".join(items)
    return Sample("lists", turns((loosely(rng, question[0].upper() + question[1:]), answer)), check="list", expect={"n": n, "kind": kind, "numbered": numbered})


def by_letter(rng, want_held):
    """Things of a kind that begin with a letter: only where the kind has enough of them."""
    while True:
        kind = rng.choice(["animals", "birds", "fruits", "jobs", "tools", "clothes", "foods", "trees", "flowers", "sports", "instruments", "vegetables"])
        letter = rng.choice("abcdefghijklmnopqrstuvw")
        pool = [x for x in KINDS[kind] if x[0] == letter]
        if len(pool) < 2:
            continue
        n = rng.randint(1, min(4, len(pool)))
        if held("letter", kind, letter, n) == want_held:
            break
    thing = kind[:-1] if kind != "clothes" else "piece of clothing"
    question = fill(rng, f"Name {{n}} {kind} that [start|begin] with {{l}}." if n > 1 else f"Name [a|an|one] {thing} that [starts|begins] with {{l}}.".replace("[a|an|one]", "one"),
                    {"n": rng.choice((str(n), number_word(n))), "l": rng.choice((letter, letter.upper(), f"the letter {letter}"))})
    return Sample("lists by letter", turns((loosely(rng, question), ", ".join(rng.sample(pool, n)))), check="list", expect={"n": n, "kind": kind, "numbered": False, "letter": letter})


SINGULAR = {"birds": "bird", "fish": "fish", "insects": "insect", "trees": "tree", "flowers": "flower", "fruits": "fruit", "vegetables": "vegetable", "colours": "colour", "metals": "metal",
            "tools": "tool", "musical instruments": "musical instrument", "clothes": "piece of clothing", "vehicles": "vehicle", "jobs": "job", "drinks": "drink", "sports": "sport",
            "shapes": "shape", "buildings": "building", "months": "month", "days of the week": "day of the week", "seasons": "season"}


def belongs(rng, want_held):
    """Is X a Y? and: which of these is a Y?"""
    names = list(SINGULAR)
    while True:
        k1, k2 = rng.sample(names, 2)
        x = rng.choice(KINDS[k1])
        if held("belongs", x, k2) == want_held:
            break
    if rng.random() < 0.5:
        asked = k1 if rng.random() < 0.5 else k2
        article = "an" if SINGULAR[asked][0] in "aeiou" else "a"
        subject = x if x[0].isupper() or k1 in ("metals", "colours", "seasons", "sports", "drinks", "fish") else ("an " if x[0] in "aeiou" else "a ") + x
        question = f"Is {subject} {article} {SINGULAR[asked]}?"
        return Sample("kinds", turns((loosely(rng, question), "Yes" if x in KINDS[asked] else "No")))
    others = [y for y in rng.sample(KINDS[k2], min(3, len(KINDS[k2]))) if y not in KINDS[k1]]
    items = others + [x]
    rng.shuffle(items)
    question = fill(rng, pick(rng, ["Which of these is a {k}: {l}?", "Which one is a {k}: {l}?", "Find the {k}: {l}"]), {"k": SINGULAR[k1], "l": join(items, rng.choice((", ", " or ")))})
    question = question.replace(" a insect", " an insect").replace(" a animal", " an animal")
    return Sample("kinds", turns((loosely(rng, question), x)))


TASKS = {"lists": of_a_kind, "lists by letter": by_letter, "kinds": belongs}
