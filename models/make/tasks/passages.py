"""A passage and a question about it. What the passage does not say is said to be so."""
import random

from grammar import fill, pick
from sample import Sample, turns
from tasks import facts
from words import names

NOT_SAID = "The text does not say."
FRAMES = ["{p}\n\n{q}", "{p} {q}", "{p}\n{q}", "Read this: {p}\n\n{q}", "Text: {p}\nQuestion: {q}", "Read the text and answer the question.\n\n{p}\n\n{q}", "{q}\n\n{p}", "Here is a text: \"{p}\" {q}",
          "Passage: {p}\n\nQuestion: {q}\nAnswer:", "I will tell you something. {p} Now tell me: {q}", "Given this text, {q}\n\n{p}", "Answer from the text: {q}\n\nText: {p}", "{p}\n\nAnswer this: {q}", "Context: {p}\n\n{q}"]
LINKS = ["It was a quiet week.", "Nobody was surprised.", "The days were long.", "Everybody in the street knows this.", "That is how it has always been.", "The winter was cold that year.", "People talk about it to this day."]


def passage(rng: random.Random, want_held: bool):
    """(text, facts, people): one to three people, three to eight facts, in the order of people or mixed."""
    people = names.people(rng, rng.choice((1, 2, 2, 3)), want_held)
    told: list[facts.Fact] = []
    shared = facts.keys(rng, rng.randint(2, 4))
    for who in people:
        chosen = shared if len(people) > 1 and rng.random() < 0.6 else facts.keys(rng, rng.randint(2, 4) if len(people) > 1 else rng.randint(3, 6))
        clear = False               # would a pronoun mean this person?
        for key in chosen:
            told.append(facts.fact(rng, who, key, want_held, again=clear))
            clear = "other" not in told[-1].slots and told[-1].key != "reason"
    sentences = [f.statement for f in told]
    if rng.random() < 0.3:
        sentences.insert(rng.randint(0, len(sentences)), rng.choice(LINKS)) if len(people) == 1 else sentences.append(rng.choice(LINKS))
    return " ".join(sentences), told, people


def _frame(rng, text, question):
    frame = pick(rng, FRAMES)
    if frame.startswith("Given"):
        question = question[0].lower() + question[1:]
    return frame.replace("{p}", text).replace("{q}", question)


def reading(rng, want_held):
    text, told, people = passage(rng, want_held)
    if rng.random() < 0.18:
        who = rng.choice(people)
        known = {f.key for f in told if f.person == who[0]}
        pairs = {k for c in facts._CONFLICTS if c & known for k in c}
        missing = [k for k in facts.FACTS if k not in known | pairs and k not in ("reason", "price", "count", "relation", "travel", "lost", "thing", "pet", "gift", "giver")]
        return Sample("reading", turns((_frame(rng, text, facts.ask_only(rng, who, rng.choice(missing), want_held)), NOT_SAID)))
    alike = [f for f in told if any(g.key == f.key and g.person != f.person for g in told)]
    f = rng.choice(alike if alike and rng.random() < 0.3 else told)         # of several people the same is told: who is meant?
    if rng.random() < 0.25 and f.key in ("job", "town", "hobby", "age", "animal", "food"):
        others = {"job": "Who is {ajob}?", "town": "Who lives in {town}?", "hobby": "Who likes {hobby}?", "age": "Who is {age} years old?", "animal": "Who has {apet}?", "food": "Who likes {food}?"}
        same = [g for g in told if g.key == f.key and g.short == f.short]
        if len(same) == 1:
            return Sample("reading", turns((_frame(rng, text, fill(rng, others[f.key], f.slots)), f.person)))
    if rng.random() < 0.3 and f.key in ("job", "town", "hobby", "age", "food", "drink"):
        claim = {"job": "Is {n} {ajob}?", "town": "Does {n} live in {town}?", "hobby": "Does {n} like {hobby}?", "age": "Is {n} {age} years old?", "food": "Does {n} like {food}?", "drink": "Does {n} drink {drink} in the morning?"}[f.key]
        true = rng.random() < 0.5
        slots = f.slots
        while not true:
            slots = facts.fact(rng, (f.person, "f"), f.key, want_held).slots
            if fill(rng, claim, slots) != fill(rng, claim, f.slots):
                break
        return Sample("reading", turns((_frame(rng, text, fill(rng, claim, slots)), "Yes" if true else "No")))
    return Sample("reading", turns((_frame(rng, text, f.question), f.answer)))


TASKS = {"reading": reading}
