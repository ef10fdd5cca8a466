"""Claims about a fact that a text tells: yes or no. A false claim is the true one with one thing exchanged, most often for something near."""
import random

from grammar import fill, number_word, pick
from tasks import facts

# key: (the claim, the slot that a false one exchanges)
CLAIMS = {
    "job": [("Is {n} {ajob}?", "ajob"), ("Does {n} work as {ajob}?", "ajob")],
    "town": [("Does {n} live in {town}?", "town"), ("Is {n}'s home in {town}?", "town")],
    "age": [("Is {n} {age} years old?", "age"), ("Is {n} {age}?", "age")],
    "pet": [("Is {n}'s {pet} called {petname}?", "petname"), ("Is {petname} the name of {n}'s {pet}?", "petname")],
    "animal": [("Does {n} have {apet}?", "apet"), ("Does {n} keep {apet}?", "apet")],
    "hobby": [("Does {n} like {hobby}?", "hobby"), ("Does {n} enjoy {hobby}?", "hobby")],
    "food": [("Does {n} like {food}?", "food"), ("Does {n} like to eat {food}?", "food")],
    "drink": [("Does {n} drink {drink} in the morning?", "drink"), ("Does {n} drink {drink} every morning?", "drink")],
    "thing": [("Is {n}'s {t} {c}?", "c"), ("Is the {t} of {n} {c}?", "c")],
    "count": [("Does {n} have {k} {things}?", "k"), ("Does {n} have {K} {things}?", "K")],
    "lost": [("Is {n}'s {t} {where}?", "where")],
    "when": [("Does {n} go to the {place} on {day}?", "day"), ("Does {n} go to the {place} on {day}?", "place")],
    "time": [("Is {n} at the {place} {time}?", "time"), ("Will {n} be at the {place} {time}?", "time")],
    "born": [("Is {n}'s birthday on {month} {day}?", "day"), ("Is {n}'s birthday on {month} {day}?", "month"), ("Was {n} born in {month}?", "month")],
    "relation": [("Is {other} {n}'s {rel}?", "other"), ("Is {other} {n}'s {rel}?", "rel"), ("Is {n}'s {rel} called {other}?", "other")],
    "gift": [("Did {n} give {other} {at}?", "at"), ("Did {n} give {other} {at}?", "other"), ("Did {other} get {at} from {n}?", "at")],
    "giver": [("Did {n} get the {t} from {other}?", "other"), ("Did {other} give {n} the {t}?", "other"), ("Did {other} give {n} {at}?", "at")],
    "travel": [("Did {n} go to {town} by {veh}?", "veh"), ("Did {n} travel by {veh}?", "veh")],
    "goal": [("Did {n} go to {town}?", "town"), ("Did {n} travel to {town}?", "town")],
    "price": [("Did {n}'s {t} cost {K} coins?", "K"), ("Was the price of {n}'s {t} {K} coins?", "K")],
}
_NUMBERS = {"age": (5, 95), "K": (2, 99), "k": (2, 20), "day": (1, 28)}


def _near(rng: random.Random, n: int, low: int, high: int) -> int:
    """Another number that looks like n: a neighbour, one digit changed, the digits the other way round."""
    tens, ones = divmod(n, 10)
    return min(high, max(low, pick(rng, [n - 1, n + 1, n + 2, n - 10, n + 10, 10 * tens + rng.randint(0, 9), 10 * rng.randint(1, 9) + ones, 10 * ones + tens])))


def _other_value(rng: random.Random, f: facts.Fact, slot: str, told: list, want_held: bool):
    """One that something else in the text has, a number nearby, or something new."""
    theirs = [v for v in (g.slots.get(slot) for g in told if g is not f) if type(v) is type(f.slots[slot]) and v != f.slots[slot]]
    if theirs and rng.random() < 0.6:
        return pick(rng, theirs)
    if slot == "other" and rng.random() < 0.5:
        people = [g.person for g in told if g.person not in (f.person, f.slots["other"])]
        if people:
            return pick(rng, people)
    if slot == "town" and "town2" in f.slots and f.key == "goal" and rng.random() < 0.5:
        return f.slots["town2"]
    if slot in _NUMBERS and str(f.slots[slot]) not in facts.DAYS and rng.random() < 0.6:
        n = f.slots["K"] if slot in ("k", "K") else f.slots[slot]
        other = _near(rng, int(n), *_NUMBERS[slot])
        return number_word(other) if slot == "k" else other
    return facts.fact(rng, (f.person, "f"), f.key, want_held).slots[slot]


def claim(rng: random.Random, f: facts.Fact, told: list, want_held: bool) -> tuple[str, str]:
    """(the question, "Yes" or "No"); `told` is all that the text says."""
    template, slot = pick(rng, CLAIMS[f.key])
    true = fill(rng, template, f.slots)
    if rng.random() < 0.5:
        return true, "Yes"
    while True:
        false = fill(rng, template, f.slots | {slot: _other_value(rng, f, slot, told, want_held)})
        if false != true:
            return false, "No"
