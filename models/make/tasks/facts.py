"""Small facts about invented people: what the passages, the JSON tasks and the conversations are made of.

A fact is a sentence that states it, questions that ask for it, the answer as a sentence and the answer in a word or two.
"""
import random
from dataclasses import dataclass

from grammar import a, fill, number_word, pick, plural, pronoun_slots
from words import kinds, names
from words.kinds import DAYS, MONTHS

# key: (how to draw the values, statements, questions, answer, short answer)
# slots: n he his him (the person), and whatever the drawing gives
_HOBBIES = [v for v in """reading|painting|fishing|singing|dancing|swimming|gardening|baking|sewing|climbing|drawing|running|sailing|cooking|knitting|skating|rowing|hiking|chess|tennis
|football|pottery|photography|carpentry|cycling|archery|juggling|collecting stamps|collecting shells|watching birds|playing cards|writing poems|building model ships|flying kites
|growing roses|keeping bees|telling stories|making candles|mending clocks|solving puzzles""".replace("\n", "").split("|")]
_SMALL = kinds.TOYS + kinds.CLOTHES + kinds.KITCHENWARE[:12] + ["key", "ring", "watch", "umbrella", "letter", "lamp", "ticket", "coin", "purse", "bag", "suitcase", "bracelet", "necklace", "book", "camera", "flute", "wallet"]
_SMALL = [x for x in _SMALL if x not in ("trousers", "building block", "scissors")]
_WHERE = [w for w in """under the bed|on the kitchen table|in the garden|behind the door|in a drawer|under the stairs|on the windowsill|in the cellar|on the roof|in the attic|beside the well|in the barn
|under a bench|in the car|on the bus|at the station|in the library|behind the curtain|in a basket|on the shelf|in the boat|at the market|by the river|under the old oak|in the snow|near the bridge""".replace("\n", "").split("|")]
_TIMES = ["at noon", "at midnight", "at dawn", "at sunset"] + [f"at {number_word(h)} o'clock" for h in range(1, 13)] + [f"at half past {number_word(h)}" for h in range(1, 13)]
_RELATIONS = ["brother", "sister", "cousin", "aunt", "uncle", "neighbour", "friend", "teacher", "grandmother", "grandfather", "daughter", "son", "boss", "nephew", "niece"]
_REASONS = ["{he} was tired", "it was raining", "the bus was late", "{he} had lost {his} key", "{he} wanted to see the sea", "{his} shoes were wet", "the shop was closed", "{he} was hungry", "{he} missed {his} family",
            "the road was icy", "{he} had a cold", "it was {his} birthday", "the bridge was broken", "{he} had forgotten {his} bag", "there was too much noise", "{he} had won a prize", "{he} was afraid of the dark", "{he} wanted to be alone"]
_ACTIONS = ["went home early", "stayed in bed", "took the train", "walked to work", "called a friend", "sat down on the steps", "went back", "baked a cake", "climbed over the fence", "slept in the barn", "sold the car", "wrote a letter",
            "left the party", "laughed out loud", "did not come", "opened the window", "moved to the country", "bought a ticket"]


def _draw_job(r, w): j = r.choice(kinds.JOBS); return {"job": j, "ajob": a(j)}
def _draw_town(r, w): return {"town": names.town(r, w)}
def _draw_age(r, w): return {"age": r.randint(5, 95)}
def _draw_pet(r, w):
    k = r.choice(kinds.PETS + kinds.FARM[:8] + kinds.BIRDS[:5])
    c = r.choice(kinds.COLOURS[:12])
    return {"pet": k, "apet": a(k), "petname": names.person(r, w)[0], "pc": c, "apc": a(c)}
def _draw_hobby(r, w): return {"hobby": r.choice(_HOBBIES)}
def _draw_food(r, w): return {"food": r.choice(kinds.FOODS[:4] + ["pancakes", "dumplings", "waffles", "noodles", "apple pie", "tomato soup", "mushroom stew", "fish pie", "fried eggs", "pea soup", "plum cake", "goat cheese", "cherry tart", "potato salad", "ginger biscuits"])}
def _draw_thing(r, w): k, c = r.choice(_SMALL), r.choice(kinds.COLOURS[:14]); return {"t": k, "at": a(k), "c": c, "ac": a(c)}
def _draw_count(r, w): k = plural(r.choice(kinds.TOYS[:12] + kinds.FRUITS + kinds.SCHOOL[:6] + ["key", "stamp", "hat", "clock", "shell", "lamp"])); n = r.randint(2, 20); return {"things": k, "k": number_word(n), "K": str(n)}
def _draw_lost(r, w): return {"t": r.choice(_SMALL), "where": r.choice(_WHERE)}
def _draw_when(r, w): return {"day": r.choice(DAYS), "time": r.choice(_TIMES), "place": r.choice(["market", "doctor", "dentist", "library", "theatre", "museum", "harbour", "swimming pool", "barber", "bakery", "concert", "school", "zoo"])}
def _draw_born(r, w): return {"month": r.choice(MONTHS), "day": r.randint(1, 28)}
def _draw_relation(r, w): rel = r.choice(_RELATIONS); return {"rel": rel, "arel": a(rel), "other": names.person(r, w)[0]}
def _draw_gift(r, w): k = r.choice(_SMALL); return {"at": a(k), "t": k, "other": names.person(r, w)[0]}
def _draw_travel(r, w): v = r.choice([v for v in kinds.VEHICLES if v not in ("sledge", "rocket", "submarine", "cart")]); return {"veh": v, "aveh": a(v), "town": names.town(r, w), "town2": names.town(r, w)}
def _draw_reason(r, w): return {"act": r.choice(_ACTIONS), "why": r.choice(_REASONS)}
def _draw_price(r, w): k = r.choice(_SMALL); return {"t": k, "at": a(k), "K": str(r.randint(2, 99))}
def _draw_drink(r, w): return {"drink": r.choice(kinds.DRINKS[:12])}


FACTS = {
    "job": (_draw_job, ["{n} is {ajob}.", "{n} works as {ajob}.", "{n} has been {ajob} for many years.", "By trade, {n} is {ajob}."],
            ["What is {n}'s job?", "What does {n} do for a living?", "What does {n} work as?", "What is {n}'s profession?"], "{n} is {ajob}.", "{job}"),
    "town": (_draw_town, ["{n} lives in {town}.", "{n}'s home is in {town}.", "{n} has a small house in {town}.", "{n} lives in the town of {town}."],
             ["Where does {n} live?", "In which town does {n} live?", "Which town does {n} live in?", "Where is {n}'s home?"], "{n} lives in {town}.", "{town}"),
    "age": (_draw_age, ["{n} is {age} years old.", "{n} turned {age} this year.", "{n} is {age}."], ["How old is {n}?", "What is {n}'s age?"], "{n} is {age} years old.", "{age}"),
    "pet": (_draw_pet, ["{n} has {apet} called {petname}.", "{n} keeps {apet} named {petname}.", "{n}'s {pet} is called {petname}.", "{n} owns {apet} whose name is {petname}."],
            ["What is the name of {n}'s {pet}?", "What is {n}'s {pet} called?"], "{n}'s {pet} is called {petname}.", "{petname}"),
    "animal": (_draw_pet, ["{n} has {apc} {pet}.", "{n} keeps {apc} {pet}.", "At home {n} has {apc} {pet}."], ["What animal does {n} have?", "What kind of animal does {n} have?", "Which animal does {n} have?"], "{n} has {apet}.", "{pet}"),
    "hobby": (_draw_hobby, ["{n} likes {hobby}.", "{n} enjoys {hobby}.", "In {his} free time {n} enjoys {hobby}.", "{n} loves {hobby}."],
              ["What does {n} like?", "What does {n} enjoy?", "What is {n}'s hobby?"], "{n} likes {hobby}.", "{hobby}"),
    "food": (_draw_food, ["{n}'s favourite food is {food}.", "{n} eats {food} whenever {he} can.", "Best of all {n} likes to eat {food}."], ["What is {n}'s favourite food?", "What does {n} like to eat?"], "{n} likes to eat {food}.", "{food}"),
    "drink": (_draw_drink, ["{n} drinks {drink} every morning.", "Every morning {n} drinks {drink}."], ["What does {n} drink every morning?", "What does {n} drink in the morning?"], "{n} drinks {drink}.", "{drink}"),
    "thing": (_draw_thing, ["{n} has {ac} {t}.", "{n} bought {ac} {t}.", "{n}'s {t} is {c}.", "{n} always carries {ac} {t}."], ["What colour is {n}'s {t}?", "Which colour is {n}'s {t}?", "What color is {n}'s {t}?"], "{n}'s {t} is {c}.", "{c}"),
    "count": (_draw_count, ["{n} has {k} {things}.", "{n} owns {k} {things}.", "{n} has {K} {things}.", "There are {k} {things} in {n}'s room."], ["How many {things} does {n} have?", "What number of {things} does {n} have?"], "{n} has {K} {things}.", "{K}"),
    "lost": (_draw_lost, ["{n} left {his} {t} {where}.", "{n} forgot {his} {t} {where}.", "{n} put {his} {t} {where}.", "{n}'s {t} is {where}."], ["Where is {n}'s {t}?", "Where can {n} find {his} {t}?", "Where did {n} leave {his} {t}?"], "{n}'s {t} is {where}.", "{where}"),
    "when": (_draw_when, ["On {day} {n} goes to the {place}.", "{n} goes to the {place} every {day}.", "{n} will go to the {place} on {day}."], ["When does {n} go to the {place}?", "On which day does {n} go to the {place}?", "What day does {n} go to the {place}?"], "{n} goes to the {place} on {day}.", "{day}"),
    "time": (_draw_when, ["{n} gets to the {place} {time}.", "{n} must be at the {place} {time}.", "{n} will be at the {place} {time}."], ["What time will {n} be at the {place}?", "At what time is {n} at the {place}?"], "{n} is at the {place} {time}.", "{time}"),
    "born": (_draw_born, ["{n} was born on {month} {day}.", "{n}'s birthday is on {month} {day}.", "{n} has {his} birthday on {month} {day}."], ["When is {n}'s birthday?", "On what date is {n}'s birthday?"], "{n}'s birthday is on {month} {day}.", "{month} {day}"),
    "relation": (_draw_relation, ["{n}'s {rel} is called {other}.", "{n} has {arel} named {other}.", "{other} is {n}'s {rel}."], ["Who is {n}'s {rel}?", "What is the name of {n}'s {rel}?", "What is {n}'s {rel} called?"], "{n}'s {rel} is {other}.", "{other}"),
    "gift": (_draw_gift, ["{n} gave {other} {at}.", "{n} gave {at} to {other}.", "{other} got {at} from {n}."], ["What did {n} give to {other}?", "What did {other} get from {n}?", "What did {n} give {other}?"], "{n} gave {other} {at}.", "{t}"),
    "giver": (_draw_gift, ["{other} gave {n} {at}.", "{n} got {at} from {other}.", "{n} was given {at} by {other}."], ["Who gave {n} the {t}?", "Who did {n} get the {t} from?"], "{other} gave {n} the {t}.", "{other}"),
    "travel": (_draw_travel, ["{n} went to {town} by {veh}.", "{n} travelled to {town} by {veh}.", "{n} took {aveh} to {town}."], ["How did {n} get to {town}?", "How did {n} travel to {town}?"], "{n} went to {town} by {veh}.", "by {veh}"),
    "goal": (_draw_travel, ["Last week {n} went from {town2} to {town}.", "{n} travelled from {town2} to {town}."], ["Where did {n} go?", "Where did {n} travel to?"], "{n} went to {town}.", "{town}"),
    "reason": (_draw_reason, ["{n} {act} because {why}.", "Because {why}, {n} {act}."], ["Why did {n} do that?"], "Because {why}.", "because {why}"),
    "price": (_draw_price, ["{n} paid {K} coins for {at}.", "{n} bought {at} for {K} coins.", "{n} sold {at} for {K} coins."], ["How much did {n}'s {t} cost?", "What was the price of {n}'s {t}?", "How many coins was {n}'s {t}?"], "The {t} cost {K} coins.", "{K} coins"),
}
_KEYS = list(FACTS)
_CONFLICTS = [{"pet", "animal"}, {"when", "time"}, {"travel", "goal"}, {"gift", "giver"}, {"lost", "thing"}]
_WHY = {"went home early": "go home early", "stayed in bed": "stay in bed", "took the train": "take the train", "walked to work": "walk to work", "called a friend": "call a friend", "sat down on the steps": "sit down on the steps",
        "went back": "go back", "baked a cake": "bake a cake", "climbed over the fence": "climb over the fence", "slept in the barn": "sleep in the barn", "sold the car": "sell the car", "wrote a letter": "write a letter",
        "left the party": "leave the party", "laughed out loud": "laugh out loud", "opened the window": "open the window", "moved to the country": "move to the country", "bought a ticket": "buy a ticket"}


@dataclass
class Fact:
    person: str
    key: str
    slots: dict
    statement: str      # a sentence
    question: str
    answer: str         # a sentence
    short: str          # a word or two


def fact(rng: random.Random, person: tuple[str, str], key: str, want_held: bool, again: bool = False) -> Fact:
    """again: the person is already known, a pronoun may stand for the name."""
    drawing, statements, questions, answer, short = FACTS[key]
    name, sex = person
    p = pronoun_slots("", sex)
    slots = drawing(rng, want_held) | {"n": name, "he": p["he"], "his": p["his"], "him": p["him"]}
    if "why" in slots:
        slots["why"] = fill(rng, slots["why"], slots)
    statement = fill(rng, pick(rng, statements), slots)
    if again and "other" not in slots and rng.random() < 0.6:
        statement = statement.replace(name + "'s", p["his"]).replace(name, p["he"])
        statement = statement[0].upper() + statement[1:]
    question = fill(rng, pick(rng, questions), slots)
    if key == "reason":
        question = f"Why did {name} {_WHY[slots['act']]}?" if slots["act"] in _WHY else f"Why did {name} not come?"
    return Fact(name, key, slots, statement, question, fill(rng, answer, slots)[0].upper() + fill(rng, answer, slots)[1:], fill(rng, short, slots))


def keys(rng: random.Random, n: int) -> list[str]:
    """n kinds of fact that do not get into each other's way."""
    out: list[str] = []
    for k in rng.sample(_KEYS, len(_KEYS)):
        if len(out) < n and not any(k in c and c & set(out) for c in _CONFLICTS):
            out.append(k)
    return out


def ask_only(rng: random.Random, person: tuple[str, str], key: str, want_held: bool) -> str:
    """A question about something that was not said."""
    return fact(rng, person, key, want_held).question
