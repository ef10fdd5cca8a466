"""Addition and subtraction to three digits, small multiplication, and the same inside a little story."""
import random

from grammar import fill, pick, plural
from sample import Sample, loosely, turns
from split import draw, held
from words import kinds, names

PLUS = ["What is {a} + {b}?"] * 4 + ["What is {a}+{b}?", "what is {a}+{b}", "whats {a} + {b}", "{a}+{b}?", "{a} + {b}?", "What's {a} + {b}?", "What is {a} plus {b}?", "What's {a} plus {b}?", "{a} + {b}", "{a} + {b} =", "{a}+{b}", "{a}+{b}=", "{a} + {b} = ?",
        "How much is {a} + {b}?", "How much is {a} plus {b}?", "Add {a} and {b}.", "Add {b} to {a}.", "Calculate {a} + {b}.", "Compute {a} + {b}.",
        "What is the sum of {a} and {b}?", "[Can|Could] you add {a} and {b}?", "Work out {a} plus {b}.", "What do you get if you add {a} and {b}?",
        "If I add {b} to {a}, what do I get?", "Please add {a} and {b}.", "Sum: {a} + {b}", "What does {a} plus {b} make?", "Tell me what {a} + {b} is.",
        "I need the sum of {a} and {b}.", "[Can|Could] you tell me what {a} + {b} is?", "[Can|Could] you calculate {a} + {b}?", "{a} plus {b} is what?",
        "What number is {b} more than {a}?", "{a} plus {b}", "What is {a} and {b} together?", "Find {a} + {b}.", "Solve {a} + {b}.", "What does {a} + {b} equal?"]
MINUS = ["What is {a} - {b}?"] * 4 + ["What is {a}-{b}?", "what is {a}-{b}", "whats {a} - {b}", "{a}-{b}?", "{a} - {b}?", "What's {a} - {b}?", "What is {a} minus {b}?", "What's {a} minus {b}?", "{a} - {b}", "{a} - {b} =", "{a}-{b}", "{a}-{b}=", "{a} - {b} = ?",
         "How much is {a} - {b}?", "How much is {a} minus {b}?", "Subtract {b} from {a}.", "Take {b} away from {a}.", "Calculate {a} - {b}.", "Compute {a} - {b}.",
         "[Can|Could] you subtract {b} from {a}?", "Work out {a} minus {b}.", "What do you get if you take {b} from {a}?", "What is {a} take away {b}?",
         "If I take {b} from {a}, what is left?", "Please subtract {b} from {a}.", "What does {a} minus {b} make?", "Tell me what {a} - {b} is.",
         "What number is {b} less than {a}?", "{a} minus {b}", "[Can|Could] you tell me what {a} - {b} is?", "Find {a} - {b}.", "Solve {a} - {b}.",
         "{a} minus {b} is what?", "What does {a} - {b} equal?", "What is {a} less {b}?"]
TIMES = ["What is {a} times {b}?", "What is {a} x {b}?", "{a} * {b}", "{a} x {b} =", "{a} times {b}", "Multiply {a} by {b}.", "What's {a} times {b}?",
         "How much is {a} times {b}?", "Calculate {a} * {b}.", "What is {a} * {b}?", "What is the product of {a} and {b}?", "What is {a} multiplied by {b}?"]
SHARE = ["What is {a} divided by {b}?", "{a} / {b}", "What is {a} / {b}?", "Divide {a} by {b}.", "How many times does {b} go into {a}?"]

GAIN = ["{n} has {a} {t} and [gets|buys|finds|is given] {b} more. How many {t} does {n} have now?",
        "{n} had {a} {t}. Then {he} [bought|found|got|won] {b} more. How many {t} did {n} have in the end?",
        "There are {a} {t} in [a box|a basket|the garden|the shop|the yard] and {b} {t} [outside|in another one|on the table]. How many {t} are there [altogether|in total|in all]?",
        "{n} [saw|counted] {a} {t} on [Monday|Tuesday|Friday] and {b} {t} on [Wednesday|Saturday|Sunday]. How many {t} [is that|were there] in total?",
        "{n} has {a} {t} and {m} has {b}. How many {t} do they have together?"]
LOSS = ["{n} has {a} {t} and [gives away|loses|sells|gives {m}] {b}. How many {t} does {n} have left?",
        "{n} had {a} {t}. {m} took {b} of them. How many {t} were left?",
        "There were {a} {t} in [the box|the basket|the garden|the shop|the yard]. {b} of them [were sold|went away|were taken]. How many are left?",
        "{n} has {a} {t} and {m} has {b}. How many more {t} does {n} have than {m}?"]
THINGS = [plural(x) for x in kinds.TOYS + kinds.FRUITS + kinds.FARM + kinds.SCHOOL + ["coin", "stamp", "shell", "button", "stone", "card", "sweet", "key", "feather", "egg", "nail",
          "candle", "ticket", "letter", "cup", "bottle", "postcard", "sticker", "brick", "bead"] if " " not in x]


def _number(rng: random.Random) -> int:
    digits = rng.choice((1, 2, 2, 3, 3, 3))
    return rng.randint(0 if digits == 1 else 10 ** (digits - 1), 10 ** digits - 1)


def _pair(rng: random.Random, want_held: bool, op: str) -> tuple[int, int]:
    """Two numbers. Sums of two single digits are never held out: there are too few to do without."""
    while True:
        a, b = _number(rng), _number(rng)
        if op == "-" and a < b and rng.random() < 0.85:
            a, b = b, a
        if op == "-" and rng.random() < 0.1:
            b = max(0, a - rng.randint(0, 12))
        if op == "+" and rng.random() < 0.1:          # long carries are rare among random pairs
            b = max(0, 10 ** len(str(a)) - a + rng.randint(-3, 3))
            if b > 999:
                continue
        small = a < 10 and b < 10
        if (held(op, a, b) and not small) == want_held:
            return a, b


def _sum(rng, want_held, op, forms, task):
    a, b = _pair(rng, want_held, op)
    question = fill(rng, pick(rng, forms), {"a": a, "b": b})
    return Sample(task, turns((loosely(rng, question), str(a + b if op == "+" else a - b))))


def addition(rng, want_held):
    return _sum(rng, want_held, "+", PLUS, "addition")


def subtraction(rng, want_held):
    return _sum(rng, want_held, "-", MINUS, "subtraction")


def word_problem(rng, want_held):
    gain = rng.random() < 0.5
    a, b = _pair(rng, want_held, "+" if gain else "-")
    if not gain and a < b:
        a, b = b, a
    (n, sex), (m, _) = names.people(rng, 2, want_held)
    slots = {"n": n, "m": m, "he": "she" if sex == "f" else "he", "a": a, "b": b, "t": pick(rng, THINGS)}
    question = fill(rng, pick(rng, GAIN if gain else LOSS), slots)
    return Sample("word problems", turns((question, str(a + b if gain else a - b))))


def three_terms(rng, want_held):
    a, b, c = draw(want_held, lambda: tuple(rng.randint(1, 60) for _ in range(3)), lambda t: ("three",) + t)
    if rng.random() < 0.4 and a + b > c:
        return Sample("three terms", turns((loosely(rng, pick(rng, ["What is {a} + {b} - {c}?", "{a} + {b} - {c}"]).format(a=a, b=b, c=c)), str(a + b - c))))
    form = pick(rng, ["What is {a} + {b} + {c}?", "{a} + {b} + {c}", "Add {a}, {b} and {c}.", "What is the sum of {a}, {b} and {c}?", "Add up {a}, {b} and {c}."])
    return Sample("three terms", turns((loosely(rng, form.format(a=a, b=b, c=c)), str(a + b + c))))


def times(rng, want_held):
    """The tables to twelve, all of them seen in training: a table is learnt by heart. Only the wording varies."""
    a, b = rng.randint(0, 12), rng.randint(0, 12)
    if b and rng.random() < 0.25:
        return Sample("times tables", turns((loosely(rng, pick(rng, SHARE).format(a=a * b, b=b)), str(a))))
    return Sample("times tables", turns((loosely(rng, pick(rng, TIMES).format(a=a, b=b)), str(a * b))))


TASKS = {"addition": addition, "subtraction": subtraction, "word problems": word_problem, "three terms": three_terms, "times tables": times}
