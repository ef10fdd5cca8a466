"""Sorting, counting, comparing: questions about the numbers and words in front of one."""
import random

from grammar import fill, number_word, pick
from sample import Sample, loosely, turns
from split import draw, held
from words import kinds, names

UP = ["Sort these numbers: {l}"] * 3 + ["Sort: {l}", "Sort {l}.", "Sort these numbers from smallest to largest: {l}", "Sort the numbers {l} in ascending order.", "Put these numbers in order: {l}",
      "Order these numbers: {l}", "Arrange {l} from small to large.", "[Can|Could] you sort {l}?", "Please sort these: {l}", "{l} - sort them please.",
      "Write {l} in ascending order.", "[Can|Could] you put {l} in order?", "Here are some numbers: {l}. Sort them.", "Sort ascending: {l}", "Sort this list: {l}",
      "Sort these from low to high: {l}", "Sort the following numbers: {l}", "What are {l} in order?", "I have the numbers {l}. Put them in order.", "Sort the list {l}.",
      "Arrange these numbers in increasing order: {l}", "Smallest first: {l}"]
DOWN = ["Sort these numbers from largest to smallest: {l}", "Sort {l} in descending order.", "Sort descending: {l}", "Put these numbers in order, biggest first: {l}",
        "Arrange {l} from large to small.", "Sort these from high to low: {l}", "[Can|Could] you sort {l}, largest first?", "Order these from greatest to least: {l}",
        "Write {l} in descending order.", "Sort these numbers in reverse order: {l}", "Largest first: {l}", "Sort these numbers in decreasing order: {l}"]
ALPHA = ["Sort these words alphabetically: {l}", "Sort these words: {l}", "Put these words in alphabetical order: {l}", "Sort alphabetically: {l}", "Order these words from A to Z: {l}",
         "[Can|Could] you put {l} in alphabetical order?", "Alphabetise: {l}", "Arrange these words alphabetically: {l}", "Sort from A to Z: {l}"]
REVERSE = ["Reverse this list: {l}", "Write this list backwards: {l}", "Say these in reverse: {l}", "Turn this list around: {l}", "List these in reverse order: {l}"]

WORDS = [w for w in dict.fromkeys(kinds.ANIMALS + kinds.FRUITS + kinds.VEGETABLES + kinds.COLOURS + kinds.TOOLS + kinds.CLOTHES + kinds.FURNITURE + kinds.KITCHENWARE
         + kinds.SCHOOL + kinds.LANDSCAPE + kinds.BUILDINGS + kinds.FLOWERS + kinds.TREES) if " " not in w and "-" not in w]
_SIMPLE = sorted(WORDS, key=lambda w: (len(w), w))[:320]        # the words that are put into the order of the alphabet


def _numbers(rng: random.Random) -> tuple[int, ...]:
    n = rng.choice((2, 3, 3, 3, 4, 4, 5, 5, 6, 6, 7, 8))
    top = rng.choice((9, 20, 50, 99, 99, 99, 999, 999))
    many = [rng.randint(0 if top < 99 else 1, top) for _ in range(n)]
    if rng.random() < 0.85 and top > n + 2:
        many = rng.sample(range(top + 1), n)
    return tuple(many)


def _written(rng: random.Random, items) -> str:
    sep = rng.choice((", ",) * 7 + (" ", ",", "; ", " and "))
    items = [str(x) for x in items]
    if rng.random() < 0.04:
        return "[" + ", ".join(items) + "]"
    if sep == " and ":
        return ", ".join(items[:-1]) + " and " + items[-1]
    return sep.join(items)


def sorting(rng, want_held):
    numbers = draw(want_held, lambda: _numbers(rng), lambda t: ("sort",) + t)
    down = rng.random() < 0.3
    question = fill(rng, pick(rng, DOWN if down else UP), {"l": _written(rng, numbers)})
    return Sample("sorting numbers", turns((loosely(rng, question), ", ".join(map(str, sorted(numbers, reverse=down))))))


def sorting_words(rng, want_held):
    words = draw(want_held, lambda: tuple(rng.sample(_SIMPLE, rng.choice((2, 3, 3, 4, 4, 5)))), lambda t: ("alpha",) + t)
    return Sample("sorting words", turns((loosely(rng, fill(rng, pick(rng, ALPHA), {"l": ", ".join(words)})), ", ".join(sorted(words)))))


def reversing(rng, want_held):
    if rng.random() < 0.5:
        items = tuple(str(x) for x in _numbers(rng))
    else:
        items = tuple(rng.sample(WORDS, rng.randint(2, 8)))
    while held("reverse", *items) != want_held:
        items = items[1:] + (rng.choice(WORDS),)
    return Sample("reversing lists", turns((loosely(rng, fill(rng, pick(rng, REVERSE), {"l": ", ".join(items)})), ", ".join(reversed(items)))))


COUNT_ITEMS = ["How many items are in this list: {l}?", "Count the things in this list: {l}", "How many words are there here: {l}?", "How many {k} are in this list: {l}?",
               "Count these: {l}", "How many are there: {l}?", "{l}. How many {k} is that?", "I have {l}. How many things do I have?", "How many things did I name: {l}?"]
COUNT_SAME = ["How many times does {w} appear in this list: {l}?", "How often do you see {w} here: {l}?", "Count the word {w}: {l}", "How many times is {w} in this list: {l}?",
              "In the list {l}, how many times does {w} occur?", "{l}. How many times did I say {w}?"]
COUNT_WORDS = ["How many words are in this sentence: {l}", "Count the words: {l}", "How many words does this sentence have: {l}", "How many words are there in \"{l}\"?",
               "Count the words in this sentence: {l}", "Count the words in \"{l}\""]
SENTENCES = ["the {a} {n} {v} [in|near|behind|under] the {p}", "[my|our|her|his] {a} {n} likes to {v}", "{m} saw a {n} and a {n2}", "a {n} and a {a} {n2} {v} by the {p} every [day|night|morning]",
             "every [day|night|week] the {n} goes to the {p} to {v}", "{m} has a {a} {n}", "the {n} is {a}", "we {v} and {v2}", "{m} and the {a} {n} walk to the {p} because they want to {v}",
             "do not {v} in the {p}", "today we [will|can] {v} near the {p} with {m}", "I [often|never|always] {v}", "the {p} is near the {p2}"]


def counting(rng, want_held):
    kind = rng.random()
    while True:
        if kind < 0.3:
            name, pool = rng.choice([("animals", kinds.ANIMALS), ("fruits", kinds.FRUITS), ("tools", kinds.TOOLS), ("colours", kinds.COLOURS), ("birds", kinds.BIRDS), ("clothes", kinds.CLOTHES), ("words", WORDS)])
            items = rng.sample(pool, rng.randint(2, 10))
            key, answer = ("items",) + tuple(items), len(items)
            question = fill(rng, pick(rng, COUNT_ITEMS), {"l": ", ".join(items), "k": name if rng.random() < 0.8 else "words"})
        elif kind < 0.68:
            pool = rng.sample(WORDS, rng.randint(2, 5))
            items = [rng.choice(pool) for _ in range(rng.randint(3, 10))]
            word = rng.choice(items)
            key, answer = ("same", word) + tuple(items), items.count(word)
            question = fill(rng, pick(rng, COUNT_SAME), {"l": ", ".join(items), "w": rng.choice((word, f"'{word}'", f'"{word}"'))})
        else:
            n, n2 = rng.sample(kinds.WILD[:40], 2)
            v, v2 = rng.sample(kinds.VERBS, 2)
            p, p2 = rng.sample(kinds.LANDSCAPE, 2)
            text = fill(rng, pick(rng, SENTENCES), {"a": pick(rng, kinds.ADJECTIVES), "n": n, "n2": n2, "v": v, "v2": v2, "p": p, "p2": p2, "m": names.person(rng, False, 0.1)[0]})
            text = text[0].upper() + text[1:] + "."
            key, answer = ("words", text), len(text.split())
            question = fill(rng, pick(rng, COUNT_WORDS), {"l": text})
        if held(*key) == want_held:
            return Sample("counting", turns((question, str(answer))))


def counting_up(rng, want_held):
    while True:
        step = rng.choice((1, 1, 1, 1, 2, 2, 3, 5, 10))
        start = rng.randint(0, 90) * (step if step > 3 else 1)
        n = rng.randint(3, 12)
        end = start + step * (n - 1)
        down = rng.random() < 0.3
        low, high = (end, start) if down else (start, end)
        if held("count", low, high, step) == want_held:
            break
    by = "" if step == 1 else rng.choice((f" by {number_word(step)}s", f" in steps of {step}", f" in {number_word(step)}s"))
    form = pick(rng, ["Count backwards from {a} to {b}{by}.", "Count down from {a} to {b}{by}.", "Count back from {a} to {b}{by}."] if down else
                ["Count from {a} to {b}{by}.", "Count up from {a} to {b}{by}.", "[Can|Could] you count from {a} to {b}{by}?", "Please count from {a} to {b}{by}."])
    question = fill(rng, form, {"a": low, "b": high, "by": by})
    return Sample("counting up", turns((loosely(rng, question), ", ".join(map(str, range(low, high + (-1 if down else 1), -step if down else step))))))


MORE = ["Which is larger, {a} or {b}?", "Which is bigger, {a} or {b}?", "Which number is greater: {a} or {b}?", "What is more, {a} or {b}?", "{a} or {b}: which is bigger?",
        "Which of {a} and {b} is larger?", "Tell me the larger of {a} and {b}.", "Is {a} or {b} bigger?", "Compare {a} and {b}. Which one is larger?", "Which is the higher number, {a} or {b}?"]
LESS = ["Which is smaller, {a} or {b}?", "Which number is less: {a} or {b}?", "What is less, {a} or {b}?", "{a} or {b}: which is smaller?", "Which of {a} and {b} is smaller?",
        "Tell me the smaller of {a} and {b}.", "Is {a} or {b} smaller?", "Compare {a} and {b}. Which one is smaller?", "Which is the lower number, {a} or {b}?"]
OVER = ["Is {a} [greater|larger|bigger|more|higher] than {b}?", "Is it true that {a} is [greater|larger|bigger] than {b}?", "Is {a} > {b}?", "{a} > {b}: true or not? Say yes or no."]
UNDER = ["Is {a} [less|smaller|lower] than {b}?", "Is it true that {a} is [smaller|less] than {b}?", "Is {a} < {b}?"]
MOST = ["What is the [largest|biggest|greatest|highest] [number|of these numbers|number in this list]: {l}?", "Which is the [largest|biggest] [number|of these|of]: {l}?", "Find the maximum: {l}", "What is the maximum of {l}?", "Which number is the largest in {l}?"]
LEAST = ["What is the [smallest|lowest] [number|of these numbers|number in this list]: {l}?", "Which is the smallest [number|of these|of]: {l}?", "Find the minimum: {l}", "What is the minimum of {l}?", "Which number is the smallest in {l}?"]
SCALES = [("taller", "shorter"), ("older", "younger"), ("faster", "slower"), ("stronger", "weaker"), ("heavier", "lighter"), ("richer", "poorer"), ("louder", "quieter"), ("bigger", "smaller")]


def comparing(rng, want_held):
    kind = rng.random()
    if kind < 0.55:
        def two():
            a = rng.randint(0, rng.choice((20, 99, 999, 999)))
            b = rng.randint(0, rng.choice((20, 99, 999, 999))) if rng.random() < 0.6 else max(0, a + rng.randint(-30, 30))
            return (a, b) if a != b else (a, b + 1)
        a, b = draw(want_held, two, lambda t: ("compare", min(t), max(t)))
        which = rng.randrange(4)
        question = fill(rng, pick(rng, (MORE, LESS, OVER, UNDER)[which]), {"a": a, "b": b})
        answer = (str(max(a, b)), str(min(a, b)), "Yes" if a > b else "No", "Yes" if a < b else "No")[which]
        return Sample("comparing", turns((loosely(rng, question), answer)))
    if kind < 0.75:
        numbers = draw(want_held, lambda: tuple(dict.fromkeys(_numbers(rng) + (rng.randint(0, 99),))), lambda t: ("extreme",) + t)
        most = rng.random() < 0.5
        question = fill(rng, pick(rng, MOST if most else LEAST), {"l": _written(rng, numbers)})
        return Sample("comparing", turns((loosely(rng, question), str(max(numbers) if most else min(numbers)))))
    more, less = rng.choice(SCALES)
    people = [n for n, _ in names.people(rng, rng.choice((2, 3, 3)), want_held)]
    order = people[:]                       # most first
    facts = [rng.choice((f"{order[i]} is {more} than {order[i + 1]}.", f"{order[i + 1]} is {less} than {order[i]}.")) for i in range(len(order) - 1)]
    rng.shuffle(facts)
    if len(order) == 2:
        top = rng.random() < 0.5
        question, answer = f"Who is {more if top else less}?", order[0 if top else 1]
    else:
        top = rng.random() < 0.5
        best = more[:-1] + "st", less[:-1] + "st"
        question, answer = f"Who is the {best[0] if top else best[1]}?", order[0 if top else 2]
    return Sample("comparing", turns((" ".join(facts) + " " + question, answer)))


TASKS = {"sorting numbers": sorting, "sorting words": sorting_words, "reversing lists": reversing, "counting": counting, "counting up": counting_up, "comparing": comparing}
