"""Conversations in which a later turn refers to an earlier one."""
import random

from grammar import fill, number_word, pick
from sample import Sample, loosely, turns
from split import draw, held
from tasks import arithmetic, dates, facts, lists, numbers, passages, small_talk, spelling
from words import kinds, names

# what somebody says of themselves, the reply, the question later, the answer
ME = {
    "name": ("My name is {n}.|I am {n}.|I'm {n}.|Call me {n}.|Hello, my name is {n}.|Hi, I'm {n}!|You can call me {n}.", "Nice to meet you, {n}!|Hello, {n}!|Hello, {n}! How can I help you?", "What is my name?|What's my name?|Do you remember my name?|Who am I?|What am I called?|Do you know my name?", "Your name is {n}."),
    "town": ("I live in {town}.|I come from {town}.|My home is in {town}.|I moved to {town}.", "I have never been to {town}. Is it nice there?|{town} sounds like a good place.", "Where do I live?|Which town do I live in?|Where is my home?", "You live in {town}."),
    "job": ("I am {ajob}.|I work as {ajob}.|I'm {ajob}.", "That must be interesting work.|A good job to have!", "What is my job?|What do I do for a living?|What do I do?|What do I work as?", "You are {ajob}."),
    "age": ("I am {age} years old.|I'm {age} years old.|I turned {age} yesterday.", "That is a good age.|Then you must know a lot.", "How old am I?|What is my age?", "You are {age} years old."),
    "pet": ("I have {apet} called {petname}.|My {pet} is called {petname}.|I own {apet} named {petname}.", "{petname} is a lovely name for {apet}.|Say hello to {petname} from me!", "What is my {pet} called?|What is the name of my {pet}?|What's my {pet}'s name?", "Your {pet} is called {petname}."),
    "hobby": ("I like {hobby}.|I love {hobby}.|My hobby is {hobby}.", "That sounds like fun.|How nice!", "What is my hobby?|What do I like?|What do I like to do?", "You like {hobby}."),
    "food": ("My favourite food is {food}.|I love to eat {food}.", "That sounds tasty.|Now I am almost hungry.", "What is my favourite food?|What do I like to eat?", "Your favourite food is {food}."),
    "thing": ("I have {ac} {t}.|I bought {ac} {t} today.|My {t} is {c}.", "That sounds nice.|A fine colour for it!", "What colour is my {t}?|What color is my {t}?", "Your {t} is {c}."),
    "lost": ("I put my {t} {where}.|I left my {t} {where}.|My {t} is {where}.", "All right, I will remember that.|Good, I have noted it.", "Where is my {t}?|Where did I put my {t}?|Where did I leave my {t}?", "Your {t} is {where}."),
    "relation": ("My {rel} is called {other}.|I have a {rel} named {other}.|My {rel}'s name is {other}.", "{other} is a nice name.|Greet {other} from me!", "What is my {rel} called?|What is my {rel}'s name?|Who is my {rel}?", "Your {rel} is called {other}."),
    "count": ("I have {k} {things}.|I own {K} {things}.", "That is quite a few.|So many!", "How many {things} do I have?|How many {things} do I own?", "You have {K} {things}."),
}
DONT_KNOW_YET = {"name": "name", "town": "home", "job": "job", "age": "age", "hobby": "hobby", "food": "favourite food"}


def _alternatives(rng, text, slots):
    return fill(rng, pick(rng, text.split("|")), slots)


def about_me(rng, want_held):
    me = names.person(rng, want_held, 0.4)
    chosen = rng.sample(list(ME), rng.randint(1, 4))
    if "name" not in chosen and rng.random() < 0.5:
        chosen.insert(0, "name")
    drawn = {k: ({} if k == "name" else facts.FACTS[k][0](rng, want_held)) | {"n": me[0]} for k in chosen}
    pairs = []
    if len(chosen) > 1 and rng.random() < 0.4:
        said = " ".join(_alternatives(rng, ME[k][0], drawn[k]) for k in chosen)
        pairs.append((said, f"Nice to meet you, {me[0]}!" if "name" in chosen else "Thank you for telling me."))
    else:
        for k in chosen:
            pairs.append((_alternatives(rng, ME[k][0], drawn[k]), _alternatives(rng, ME[k][1], drawn[k])))
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        other = rng.choice((arithmetic.addition, numbers.sorting, dates.days, small_talk.outside, lists.of_a_kind, spelling.backwards, numbers.comparing))(rng, want_held)
        pairs.append((other.messages[0]["content"], other.answer))
    asked = rng.sample(chosen, 1 if want_held else rng.randint(1, len(chosen)))
    for k in asked:
        pairs.append((loosely(rng, _alternatives(rng, ME[k][2], drawn[k])), _alternatives(rng, ME[k][3], drawn[k])))
    if not want_held and rng.random() < 0.12:
        k = rng.choice([k for k in DONT_KNOW_YET if k not in chosen] or ["name"])
        if k not in chosen:
            pairs.append((_alternatives(rng, ME[k][2], {}), f"You have not told me your {DONT_KNOW_YET[k]}."))
    if not want_held and rng.random() < 0.1 and "name" in chosen:
        second = names.person(rng, False, 0.4)[0]
        pairs.append((rng.choice((f"Actually, my name is {second}.", f"Sorry, I meant {second}. My name is {second}.")), f"Thank you, {second}. I will remember."))
        pairs.append(("What is my name?", f"Your name is {second}."))
    return Sample("turns", turns(*pairs))


PLUS_THAT = ["Add {x} to that.", "Plus {x}?", "Now add {x}.", "And {x} more?", "And plus {x}?", "Add {x}.", "What if I add {x} to it?", "Now plus {x}.", "And if you add {x}?"]
MINUS_THAT = ["Take {x} away from that.", "Minus {x}?", "Now subtract {x}.", "And {x} less?", "And minus {x}?", "Subtract {x}.", "What if I take {x} away?", "Now minus {x}."]


def running_sum(rng, want_held):
    first = (arithmetic.addition if rng.random() < 0.6 else arithmetic.subtraction)(rng, want_held)
    total = int(first.answer)
    pairs = [(first.messages[0]["content"], first.answer)]
    for _ in range(rng.randint(1, 3)):
        x = rng.randint(1, rng.choice((9, 99, 300)))
        if total + x <= 1500 and (rng.random() < 0.5 or total < x):
            total += x
            pairs.append((loosely(rng, pick(rng, PLUS_THAT).format(x=x)), str(total)))
        elif total >= x:
            total -= x
            pairs.append((loosely(rng, pick(rng, MINUS_THAT).format(x=x)), str(total)))
    if not want_held and rng.random() < 0.25:
        start = pairs[0][1]
        pairs.append((rng.choice(("What was your first answer?", "What was the first result?", "What was the answer to my first question?")), start))
    return Sample("turns", turns(*pairs))


ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"]


def after_a_list(rng, want_held):
    if rng.random() < 0.5:
        s = lists.of_a_kind(rng, want_held)
        items = [x.split(". ", 1)[1] for x in s.answer.split("\n")] if "\n" in s.answer or s.expect["numbered"] else s.answer.split(", ")
    else:
        s = numbers.sorting(rng, want_held)
        items = s.answer.split(", ")
    pairs = [(s.messages[0]["content"], s.answer)]
    for _ in range(1 if want_held else rng.randint(1, 3)):
        r = rng.random()
        if r < 0.4:
            i = rng.randrange(min(len(items), 8))
            pairs.append((loosely(rng, fill(rng, "What [was|is] the {o} [one|one on the list|thing you named|item]?", {"o": ORDINALS[i]})) if rng.random() < 0.8 else f"And the {ORDINALS[i]} one?", items[i]))
        elif r < 0.55:
            pairs.append((loosely(rng, fill(rng, "What [was|is] the last [one|one on the list|item]?", {})), items[-1]))
        elif r < 0.7:
            pairs.append((loosely(rng, rng.choice(("How many were there?", "How many did you list?", "How many is that?", "Count them.", "How many are in the list?"))), str(len(items))))
        elif r < 0.85:
            items = items[::-1]
            pairs.append((loosely(rng, rng.choice(("Now the other way round.", "Now in reverse order.", "And backwards?", "Reverse the list.", "Turn the list around."))), ", ".join(items)))
        elif items[0].lstrip("-").isdigit():
            most = rng.random() < 0.5
            pairs.append((loosely(rng, f"Which is the {'largest' if most else 'smallest'} of them?"), str((max if most else min)(map(int, items)))))
        else:
            pairs.append((loosely(rng, rng.choice(("In capitals, please.", "Now in capital letters.", "Write that in capitals.", "Again, in capitals."))), ", ".join(items).upper()))
            items = [x.upper() for x in items]
    return Sample("turns", turns(*pairs))


def again(rng, want_held):
    """Repeat, shout, or say what was asked."""
    pool = (arithmetic.addition, numbers.sorting, dates.days, numbers.comparing, spelling.backwards, dates.dates, small_talk.talk, arithmetic.word_problem, passages.reading)
    made = [rng.choice(pool)(rng, want_held) for _ in range(rng.randint(1, 3))]
    pairs = [(s.messages[0]["content"], s.answer) for s in made]
    r = rng.random()
    if r < 0.35:
        pairs.append((loosely(rng, rng.choice(("Say that again.", "Repeat that, please.", "What did you say?", "Again, please.", "Could you repeat that?", "Please repeat your answer.", "Once more?"))), pairs[-1][1]))
    elif r < 0.6:
        pairs.append((loosely(rng, rng.choice(("In capitals, please.", "Now in capital letters.", "Say that in capitals.", "Write that in capitals."))), pairs[-1][1].upper()))
    elif r < 0.8 and len(pairs[0][0]) < 60:
        pairs.append((loosely(rng, rng.choice(("What did I ask first?", "What was my first question?", "What did I say first?"))), pairs[0][0]))
    elif len(pairs[-1][0]) < 60:
        pairs.append((loosely(rng, rng.choice(("What did I just ask?", "What was my last question?", "What did I just say?"))), pairs[-1][0]))
    else:
        pairs.append(("Repeat that, please.", pairs[-1][1]))
    return Sample("turns", turns(*pairs))


def several_questions(rng, want_held):
    """One passage, several questions."""
    text, told, _ = passages.passage(rng, want_held)
    order = rng.sample(told, min(len(told), rng.randint(2, 4)))
    pairs = [(rng.choice(("{p}\n\n{q}", "Read this: {p} {q}", "{p} {q}")).replace("{p}", text).replace("{q}", order[0].question), order[0].answer)]
    if rng.random() < 0.3:
        pairs = [(rng.choice(("Here is a text: ", "Read this text: ", "Listen: ", "")) + text, rng.choice(("Thank you. What would you like to know?", "I have read it. What is your question?"))), (order[0].question, order[0].answer)]
    for f in order[1:]:
        pairs.append((f.question if rng.random() < 0.8 else "And " + f.question[0].lower() + f.question[1:], f.answer))
    return Sample("turns", turns(*pairs))


def step_on(rng, want_held):
    """And the day after that?"""
    s = dates.days(rng, want_held) if rng.random() < 0.5 else dates.months(rng, want_held)
    ring = dates.DAYS if s.answer in dates.DAYS else dates.MONTHS if s.answer in dates.MONTHS else None
    if ring is None:
        return step_on(rng, want_held)
    pairs, at, unit = [(s.messages[0]["content"], s.answer)], ring.index(s.answer), "day" if ring is dates.DAYS else "month"
    for _ in range(rng.randint(1, 3)):
        step = rng.choice((1, 1, -1))
        at = (at + step) % len(ring)
        pairs.append((loosely(rng, rng.choice((f"And the {unit} after that?", "And after that?", f"And the next {unit}?", "What comes next?") if step > 0 else (f"And the {unit} before that?", "And before that?"))), ring[at]))
    return Sample("turns", turns(*pairs))


def turns_back(rng, want_held):
    return rng.choice((about_me, about_me, about_me, running_sum, after_a_list, after_a_list, again, several_questions, step_on))(rng, want_held)


TASKS = {"turns": turns_back}
