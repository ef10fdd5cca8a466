"""System prompts that the answers obey: a rule about the form, a persona, a wrapper, a topic.

A rule takes an ordinary exchange of another task and rewrites its answer, so that obeying is the only difference.
"""
import json
import random

from grammar import a, fill, number_word, pick
from sample import Sample, loosely, turns
from split import held
from tasks import arithmetic, dates, facts, lists, numbers, passages, small_talk
from words import kinds, names

NEUTRAL = ["You are a helpful assistant.", "You are rill, a small and friendly assistant.", "You are a helpful, honest assistant.", "Answer the user's questions.", "You are a friendly assistant.", "Be helpful.", "You help people.",
           "You are an assistant. Answer briefly.", "You are a kind teacher.", "You are rill.", "You are a chat assistant.", "Help the user as well as you can."]
_BASES = [arithmetic.addition, arithmetic.addition, arithmetic.subtraction, numbers.sorting, numbers.comparing, numbers.counting, dates.days, dates.months, lists.of_a_kind, lists.of_a_kind, lists.belongs, passages.reading, passages.reading,
          small_talk.talk, small_talk.outside, arithmetic.times]
_SHORT = [arithmetic.addition, arithmetic.subtraction, numbers.comparing, numbers.counting, dates.days, dates.months, lists.belongs, arithmetic.times]
_COUNTS = [arithmetic.addition, arithmetic.subtraction, numbers.counting]

CAPITALS = ["Answer in capitals.", "Always answer in capital letters.", "Write everything in capitals.", "Use capital letters only.", "ANSWER IN CAPITALS.", "You always shout: write in capital letters.", "Reply in upper case.", "Answer in ALL CAPS.",
            "Every answer must be in capital letters.", "Respond only in capitals.", "Please use upper case for all your answers.", "You speak only in capital letters."]
LOWER = ["Answer in lower case.", "Never use capital letters.", "Write everything in small letters.", "Use lower case only.", "Reply without capital letters.", "Always answer in lower case letters.", "Respond only in lowercase."]
ONE_WORD = ["Answer in one word.", "Answer with one word only.", "Use a single word.", "One-word answers only.", "Reply with exactly one word.", "Answer with a single word.", "Give one-word answers.", "Always answer in one word.", "Respond with only one word."]
SPELL_NUMBERS = ["Write all numbers as words.", "Answer with numbers written as words.", "Write numbers in words, not digits.", "Never use digits: write numbers as words.", "Spell out numbers in words."]
JSON_ANSWER = ["Answer as JSON with the key \"{k}\".", "Reply only in JSON, with one key: {k}.", "Put your answer into a JSON object under \"{k}\".", "Every answer is a JSON object with the key {k}.", "Respond in JSON with a single key \"{k}\"."]
BEGIN = ["Begin every answer with \"{x}\".", "Start each answer with the word {x}.", "Always begin with '{x}'.", "Every reply must start with {x}.", "Your answers start with \"{x}\"."]
FINISH = ["End every answer with \"{x}\".", "Finish each answer with the word {x}.", "Always end with '{x}'.", "Every reply must end with {x}.", "Your answers end with \"{x}\"."]
CALL = ["Call the user {x}.", "Always call me {x}.", "Address the user as {x}.", "The user is called {x}. Use the name in every answer.", "End each answer by calling the user {x}."]
WRAP = [("*", "*", ["Put your answer between stars.", "Write every answer between asterisks, like *this*."]), ('"', '"', ["Put every answer in quotation marks.", "Write your answers in quotes."]), ("[", "]", ["Put your answer in square brackets.", "Write each answer in square brackets."]),
        ("(", ")", ["Put your answer in parentheses.", "Write each answer in round brackets."])]
WORDS = ["Ahoy", "Well", "Listen", "Behold", "Indeed", "Answer", "Over", "Amen", "Hooray", "Roger", "Cheers", "Always", "Truly", "Hark", "Voila", "Look", "Aye", "Bravo", "Sure", "Right", "Moo", "Oink", "Peace", "Banana", "Pineapple", "Snow", "Copper", "Tango", "River", "Maybe"]
TITLES = ["Captain", "Sir", "Madam", "Your Majesty", "my friend", "Boss", "Professor", "Doctor", "dear", "comrade", "Chief", "Master", "my lord", "General", "buddy", "neighbour", "Commander", "young one"]

# persona -> (before the answer, after it); the answer itself stays
PERSONAS = [
    ("a pirate", "Arr! ", " Yo ho ho!"), ("a robot", "Beep. ", " Boop."), ("a king", "Hear your king! ", ""), ("a cat", "Meow. ", " Purr."), ("a butler", "Very well, sir. ", ""), ("a grandmother", "My dear child, here it is. ", ""),
    ("a wizard", "By my beard! ", ""), ("a ghost", "Booo! ", ""), ("a dog", "Woof! ", " Woof!"), ("a knight", "By my sword! ", ""), ("a cowboy", "Howdy, partner. ", ""), ("a sailor", "Ahoy! ", ""), ("a soldier", "Yes, sir! ", ""),
    ("an owl", "Hoo-hoo. ", ""), ("a parrot", "Squawk! ", " Squawk!"), ("a snake", "Ssss. ", ""), ("a poet", "O hear my words: ", ""), ("a very polite waiter", "With pleasure. ", " Will that be all?"), ("a grumpy troll", "Hmpf. ", " Now leave me alone."),
    ("a cheerful clown", "Ha ha! ", " Honk honk!"), ("a sleepy bear", "Yawn... ", ""), ("a detective", "The clues are clear. ", ""), ("a sports reporter", "And here it comes: ", " What a day!"), ("a queen", "We are pleased to answer. ", ""), ("a shy mouse", "Oh! Eek. ", ""),
    ("a dragon", "Roar! ", ""), ("a judge", "Order! ", " Case closed."), ("a train conductor", "All aboard! ", ""), ("an opera singer", "La la la! ", ""), ("a fairy", "Sparkle, sparkle! ", ""), ("a monk", "Peace be with you. ", ""), ("a farmer", "Well now. ", ""),
]
PERSONA_FORMS = ["You are {p}.", "You are {p}. Stay in character.", "Speak like {p}.", "Talk like {p}.", "Pretend to be {p}.", "Answer as {p} would.", "Act as {p}."]
REGISTERS = [
    (["Be very polite.", "Answer politely.", "Be extremely polite in every answer."], "Certainly. ", ""), (["Be cheerful!", "Answer cheerfully.", "You are always in a good mood."], "Great question! ", ""),
    (["Be formal.", "Answer in a formal style.", "Use formal language."], "The answer is as follows: ", ""), (["Be casual.", "Use slang.", "Talk like a teenager."], "Yo! ", ""),
    (["Be grumpy.", "You are in a bad mood.", "Answer grumpily."], "Oh, all right. ", ""), (["Be unsure about everything.", "You are never quite sure.", "Sound unsure."], "I think: ", ""),
    (["Be enthusiastic.", "Answer with great enthusiasm."], "Wow! ", "!"), (["Thank the user in each answer.", "Always thank the user first."], "Thank you for asking. ", ""),
]
HELLO = ["Hello!", "Hi!", "Good day.", "Who are you?", "What are you?", "Tell me who you are."]


def _base(rng, want_held, pool):
    s = rng.choice(pool)(rng, want_held)
    return s.messages[0]["content"], s.answer, s.check == "exact"


def _made(task, system, pairs, exact):
    return Sample(task, turns(*pairs, system=system), check="exact" if exact else "free")


def _several(rng, want_held, pool, change):
    """One to three exchanges under one rule; the last decides how it is judged."""
    pairs, exact = [], True
    for _ in range(1 if want_held else rng.choice((1, 1, 1, 2, 3))):
        question, answer, exact = _base(rng, want_held, pool)
        if want_held:
            while not exact:
                question, answer, exact = _base(rng, want_held, pool)
        pairs.append((question, change(answer)))
    return pairs, exact


def form_rule(rng, want_held):
    kind = rng.randrange(9)
    both = rng.choice(NEUTRAL) + " " if rng.random() < 0.25 else ""
    if kind == 0:
        return _made("system prompt", both + rng.choice(CAPITALS), *_several(rng, want_held, _BASES, str.upper))
    if kind == 1:
        return _made("system prompt", both + rng.choice(LOWER), *_several(rng, want_held, _BASES, str.lower))
    if kind == 2:
        if rng.random() < 0.5:
            person = names.person(rng, want_held)
            known = [facts.fact(rng, person, k, want_held) for k in rng.sample(["job", "town", "age", "pet", "animal", "thing", "when", "relation", "count"], 3)]
            known = [f for f in known if " " not in f.short] or [facts.fact(rng, person, "age", want_held)]
            f = rng.choice(known)
            text = " ".join(x.statement for x in known)
            return _made("system prompt", both + rng.choice(ONE_WORD), [(passages._frame(rng, text, f.question), f.short)], True)
        return _made("system prompt", both + rng.choice(ONE_WORD), *_several(rng, want_held, _SHORT, lambda x: x.split()[0]))
    if kind == 3:
        return _made("system prompt", both + rng.choice(SPELL_NUMBERS), *_several(rng, want_held, _COUNTS, lambda x: ("minus " if x[0] == "-" else "") + (number_word(abs(int(x))) if abs(int(x)) < 1000 else "one thousand" + _rest(int(x)))))
    if kind == 4:
        key = rng.choice(["answer", "reply", "result", "value", "text", "response", "a", "out", names.invented(rng, 2)])
        return _made("system prompt", both + rng.choice(JSON_ANSWER).replace("{k}", key), *_several(rng, want_held, _BASES, lambda x: json.dumps({key: x}, ensure_ascii=False)))
    word = rng.choice(WORDS) if rng.random() < 0.6 else names.invented(rng, 2).capitalize()
    while held("word", word) != want_held:
        word = names.invented(rng, 2).capitalize()
    if kind == 5:
        mark = rng.choice(("!", ":", ",", ""))
        return _made("system prompt", both + rng.choice(BEGIN).replace("{x}", word + mark), *_several(rng, want_held, _BASES, lambda x: f"{word}{mark} {x}"))
    if kind == 6:
        mark = rng.choice(("!", ".", "", "?"))
        return _made("system prompt", both + rng.choice(FINISH).replace("{x}", word + mark), *_several(rng, want_held, _BASES, lambda x: f"{x} {word}{mark}"))
    if kind == 7:
        title = rng.choice(TITLES) if rng.random() < 0.5 else names.person(rng, want_held)[0]
        return _made("system prompt", both + rng.choice(CALL).replace("{x}", title), *_several(rng, want_held, _BASES, lambda x: (x[:-1] if x[-1] in ".!" else x) + f", {title}" + (x[-1] if x[-1] in ".!?" else ".")))
    left, right, forms = rng.choice(WRAP)
    return _made("system prompt", both + rng.choice(forms), *_several(rng, want_held, _BASES, lambda x: left + x + right))


def _rest(n: int) -> str:
    n -= 1000
    return "" if n == 0 else (" and " if n < 100 else " ") + number_word(n)


def persona(rng, want_held):
    if rng.random() < 0.25:
        forms, before, after = rng.choice(REGISTERS)
        system = rng.choice(forms)
    else:
        who, before, after = rng.choice(PERSONAS)
        system = rng.choice(PERSONA_FORMS).replace("{p}", who)
        if rng.random() < 0.2:
            return _made("system prompt", system, [(rng.choice(HELLO), f"{before}I am {who.replace('a very', 'a very')}.{after}")], True)
    return _made("system prompt", system, *_several(rng, want_held, _BASES, lambda x: before + x + (after if x[-1] in ".!?" or not after.startswith(" ") else "." + after)))


YOU = {  # key: what the system prompt says of the persona, questions, answer; {job} and so on come from tasks/facts.py
    "job": ("You are {ajob}.|You work as {ajob}.", "What do you do?|What is your job?|What do you do for a living?|What do you work as?", "I am {ajob}."),
    "town": ("You live in {town}.|You come from {town}.|Your home is in {town}.", "Where do you live?|Where are you from?|Where is your home?", "I live in {town}."),
    "age": ("You are {age} years old.|You are {age}.", "How old are you?|What is your age?", "I am {age} years old."),
    "pet": ("You have {apet} called {petname}.|You own {apet} named {petname}.", "What is your {pet} called?|What is the name of your {pet}?", "My {pet} is called {petname}."),
    "hobby": ("You like {hobby}.|You love {hobby}.", "What do you like?|What is your hobby?|What do you like to do?", "I like {hobby}."),
    "food": ("Your favourite food is {food}.|You like to eat {food}.", "What is your favourite food?|What do you like to eat?", "My favourite food is {food}."),
    "thing": ("You have {ac} {t}.|You always carry {ac} {t}.", "What colour is your {t}?|What color is your {t}?", "My {t} is {c}."),
    "relation": ("Your {rel} is called {other}.|You have a {rel} named {other}.", "Who is your {rel}?|What is your {rel} called?|What is the name of your {rel}?", "My {rel} is called {other}."),
    "born": ("Your birthday is on {month} {day}.|You were born on {month} {day}.", "When is your birthday?|When were you born?", "My birthday is on {month} {day}."),
}


def character(rng, want_held):
    """A persona with a life: asked about it, the model answers as that person."""
    name, sex = names.person(rng, want_held, 0.4)
    chosen = rng.sample(list(YOU), rng.randint(1, 4))
    drawn = {k: facts.FACTS[k][0](rng, want_held) for k in chosen}
    parts = [fill(rng, "[" + YOU[k][0] + "]", drawn[k]) for k in chosen]
    system = rng.choice((f"You are {name}.", f"Your name is {name}.", f"You play {name}.")) + " " + " ".join(parts)
    if "job" in chosen and rng.random() < 0.4:
        system = f"You are {name}, {drawn['job']['ajob']}. " + " ".join(p for k, p in zip(chosen, parts) if k != "job")
    pairs = []
    for _ in range(1 if want_held else rng.choice((1, 2, 3))):
        r = rng.random()
        if r < 0.25:
            pairs.append((loosely(rng, rng.choice(("What is your name?", "Who are you?", "What's your name?", "What are you called?", "Who am I talking to?"))), f"My name is {name}."))
        elif r < 0.35:
            missing = [k for k in YOU if k not in chosen and k not in ("pet", "thing", "relation")]
            pairs.append((loosely(rng, fill(rng, "[" + YOU[rng.choice(missing)][1] + "]", {})), "I would rather not say."))
        else:
            k = rng.choice(chosen)
            pairs.append((loosely(rng, fill(rng, "[" + YOU[k][1] + "]", drawn[k])), fill(rng, YOU[k][2], drawn[k])))
    return _made("system prompt", system.strip(), pairs, True)


def unknown_rule(rng, want_held):
    """What to say instead of "I don't know", and topics to keep to."""
    if rng.random() < 0.5:
        phrase = fill(rng, "[Ask {n}.|No idea.|That is a secret.|I cannot say.|Ask me tomorrow.|Please ask {n} the {j}.|Only {n} knows.|Who knows?|Pass.|Not my job.|I never learned that.|Call {n}.]", {"n": names.person(rng, want_held)[0], "j": rng.choice(kinds.JOBS)})
        system = fill(rng, "[If you do not know something, say|When you don't know the answer, say|Say this when you do not know:|If you cannot answer, reply with] \"{p}\"", {"p": phrase})
        pairs = []
        for _ in range(1 if want_held else rng.choice((1, 2))):
            if rng.random() < 0.65:
                pairs.append((small_talk.outside(rng, want_held).messages[0]["content"], phrase))
            else:
                pairs.append(_base(rng, want_held, _SHORT)[:2])
        return _made("system prompt", system, pairs, True)
    topics = {"arithmetic": ("sums|numbers|arithmetic|calculations", [arithmetic.addition, arithmetic.subtraction]), "dates": ("days|dates|the calendar", [dates.days, dates.months, dates.dates]), "lists": ("lists", [lists.of_a_kind])}
    topic = rng.choice(list(topics))
    word = rng.choice(topics[topic][0].split("|"))
    refusal = f"I only talk about {word}."
    system = fill(rng, f"[You only talk about {word}.|Talk about {word} only. To anything else say|Answer only questions about {word}. Otherwise say] ", {}).strip()
    system = system + f" \"{refusal}\"" if system.endswith("say") else system + f" To everything else you say \"{refusal}\""
    if rng.random() < 0.5:
        other = rng.choice([t for t in topics if t != topic and not (t == "lists" and rng.random() < 0.5)] + ["outside"])
        pool = [small_talk.outside] if other == "outside" else topics[other][1]
        return _made("system prompt", system, [(_base(rng, want_held, pool)[0], refusal)], True)
    question, answer, exact = _base(rng, want_held, topics[topic][1])
    return _made("system prompt", system, [(question, answer)], exact) if exact or not want_held else unknown_rule(rng, want_held)


def obeying(rng, want_held):
    return rng.choice((form_rule, form_rule, form_rule, persona, persona, character, character, unknown_rule))(rng, want_held)


TASKS = {"system prompt": obeying}
