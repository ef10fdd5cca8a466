"""A passage and a question about it. What the passage does not say is said to be so."""
import random

from grammar import fill, pick
from sample import Sample, turns
from tasks import claims, facts
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


# key: (the question, the slot that must be one person's alone)
WHO = {"job": ("Who is {ajob}?", "ajob"), "town": ("Who lives in {town}?", "town"), "hobby": ("Who likes {hobby}?", "hobby"), "age": ("Who is {age} years old?", "age"), "animal": ("Who has {apet}?", "apet"),
       "food": ("Who likes {food}?", "food"), "drink": ("Who drinks {drink} in the morning?", "drink"), "born": ("Who was born on {month} {day}?", "day"), "goal": ("Who went to {town}?", "town"), "count": ("Who has {K} {things}?", "K")}


def _not_said(rng, told, people, want_held):
    who = rng.choice(people)
    known = {f.key for f in told if f.person == who[0]}
    pairs = {k for c in facts._CONFLICTS if c & known for k in c}
    missing = [k for k in facts.FACTS if k not in known | pairs and k not in ("reason", "price", "count", "relation", "travel", "lost", "thing", "pet", "gift", "giver")]
    return facts.ask_only(rng, who, rng.choice(missing), want_held), NOT_SAID


def _question(rng, told, people, want_held) -> tuple[str, str]:
    """A question and its answer."""
    r = rng.random()
    if r < 0.15:
        return _not_said(rng, told, people, want_held)
    alike = [f for f in told if any(g.key == f.key and g.person != f.person for g in told)]         # of several people the same is told: who is meant?
    pool = alike if alike and rng.random() < 0.4 else told
    f = rng.choice(pool)
    if r < 0.45 and f.key in claims.CLAIMS:
        return claims.claim(rng, f, told, want_held)
    askable = [(g, WHO[g.key]) for g in pool if g.key in WHO]
    askable = [(g, question) for g, (question, slot) in askable if sum(h.slots.get(slot) == g.slots[slot] for h in told) == 1]
    if r > 0.82 and askable:
        g, question = rng.choice(askable)
        return fill(rng, question, g.slots), g.person
    return f.question, f.answer


def reading(rng, want_held):
    text, told, people = passage(rng, want_held)
    question, answer = _question(rng, told, people, want_held)
    return Sample("reading", turns((_frame(rng, text, question), answer)))


def several(rng, want_held):
    """A few questions in a row about one text."""
    text, told, people = passage(rng, want_held)
    asked = dict(_question(rng, told, people, want_held) for _ in range(rng.randint(2, 4)))
    (first, answer), *more = asked.items()
    return Sample("several questions", turns((_frame(rng, text, first), answer), *more))


TASKS = {"reading": reading, "several questions": several}
