"""Fields of a sentence as JSON: keys and types are given, in any order, nested at most once."""
import json
import random

from grammar import a, fill, join, number_word, pick, plural
from sample import Sample, turns
from words import kinds, names
from words.kinds import DAYS, MONTHS


def _person(r, w):
    first, sex = names.person(r, w, 0.4)
    last = names.surname(r, w)
    he, his = ("she", "her") if sex == "f" else ("he", "his")
    return {"first": first, "last": last, "full": f"{first} {last}" if r.random() < 0.6 else first, "he": he, "his": his}


# A record: sentences with slots, then fields: (key names to choose from, type, slot).
# The sentences of one record all state every field.
RECORDS = [
    (["{full} is {age} years old and lives in {town}.", "{full}, {age}, lives in {town}.", "{full}, aged {age}, comes from {town}.", "I am {full}, I am {age} and I live in {town}.", "My name is {full}. I am {age} years old. I live in {town}.", "In {town} lives {full}, who is {age}."],
     [("name|person|full_name|who", "string", "full"), ("age|years|years_old", "integer", "age"), ("city|town|place|home|location", "string", "town")]),
    (["{full} works as {ajob} in {town} and earns {k} coins a week.", "{full} is {ajob} in {town}. The pay is {k} coins a week.", "For {k} coins a week, {full} works in {town} as {ajob}."],
     [("name|employee|worker|person", "string", "full"), ("job|profession|occupation|work", "string", "job"), ("city|town|place|location", "string", "town"), ("pay|wage|salary|coins", "integer", "k")]),
    (["{full} ordered {n} {things} and {n2} {things2} for {day}.", "Order for {full}: {n} {things} and {n2} {things2}, to be delivered on {day}.", "On {day}, {full} needs {n} {things} and {n2} {things2}."],
     [("customer|name|buyer|client", "string", "full"), ("{things_key}", "integer", "n"), ("{things2_key}", "integer", "n2"), ("day|weekday|delivery_day", "string", "day")]),
    (["{full} has {apet} called {petname}.", "{full}'s {pet} is called {petname}.", "{petname} is the {pet} of {full}.", "{full} owns {apet} named {petname}."],
     [("owner|name|person|human", "string", "full"), ("animal|pet|kind|species", "string", "pet"), ("pet_name|animal_name|called", "string", "petname")]),
    (["The meeting is on {day} at {hour} in the {room}.", "We meet in the {room} on {day} at {hour}.", "Please come to the {room} on {day} at {hour}.", "On {day} at {hour} there is a meeting in the {room}."],
     [("day|weekday|date", "string", "day"), ("time|hour|start|at", "string", "hour"), ("room|place|location|where", "string", "room")]),
    (["The {colour} {thing} costs {k} coins.", "{acolour} {thing} is on sale for {k} coins.", "You can buy {acolour} {thing} for {k} coins.", "For {k} coins you get {acolour} {thing}."],
     [("item|product|thing|article", "string", "thing"), ("colour|color", "string", "colour"), ("price|cost|coins", "integer", "k")]),
    (["{full} was born on {mday} in {town} and has {n} {siblings}.", "Born in {town} on {mday}, {full} has {n} {siblings}.", "{full} has {n} {siblings} and was born on {mday} in {town}."],
     [("name|person|full_name", "string", "full"), ("birthday|date|born|birth_date", "string", "mday"), ("birthplace|city|town|place", "string", "town"), ("{siblings}|siblings", "integer", "n")]),
    (["{full} took the {veh} from {town} to {town2}.", "By {veh}, {full} went from {town} to {town2}.", "{full} travelled from {town} to {town2} by {veh}.", "From {town} to {town2}, {full} went by {veh}."],
     [("traveller|name|person|passenger", "string", "full"), ("from|start|origin", "string", "town"), ("to|end|goal|destination", "string", "town2"), ("vehicle|by|transport", "string", "veh")]),
    (["Today in {town} it is {temp} degrees, with {weather} and {wind} wind.", "{town}: {temp} degrees, {weather}, {wind} wind.", "It is {temp} degrees in {town} with {weather} and {wind} wind."],
     [("city|town|place|location", "string", "town"), ("temperature|degrees|temp", "integer", "temp"), ("weather|sky|conditions", "string", "weather"), ("wind", "string", "wind")]),
    (["{full} {plays} the {instr} and is {member} of the choir.", "{full}, who {plays} the {instr}, is {member} of the choir."],
     [("name|person|musician", "string", "full"), ("instrument|plays", "string", "instr"), ("member|in_choir|choir|is_member", "boolean", "is_member")]),
    (["The shop is {open} and sells {l}.", "In the shop, which is {open}, you find {l}.", "You can buy {l} in the shop. It is {open} now."],
     [("open|is_open", "boolean", "is_open"), ("items|goods|products|things", "list of strings", "items")]),
    (["{full} packed {l} for the trip to {town}.", "For the trip to {town}, {full} took {l}.", "{full} goes to {town} with {l}."],
     [("name|traveller|person|who", "string", "full"), ("items|packed|things|luggage", "list of strings", "items"), ("destination|town|place|city", "string", "town")]),
    (["{first}'s friends are {friends}.", "{first} invited {friends}.", "{first} is friends with {friends}.", "{friends} are coming to see {first}."],
     [("name|host|person|who", "string", "first"), ("friends|guests|people|names", "list of strings", "friends_list")]),
    (["The {thing} weighs {dec} kilos and is {colour}.", "{acolour} {thing} of {dec} kilos.", "There is {acolour} {thing}; it weighs {dec} kilos."],
     [("item|object|thing", "string", "thing"), ("weight|kilos|mass|weight_kg", "number", "dec"), ("colour|color", "string", "colour")]),
    (["{full}, {ajob}, can be reached at {phone}.", "Call {full} at {phone}. {first} is {ajob}.", "The number of {full}, {ajob}, is {phone}."],
     [("name|person|contact", "string", "full"), ("job|profession|occupation", "string", "job"), ("phone|number|telephone", "string", "phone")]),
    (["{full} won the {sport} match against {other} by {n} to {small}.", "{n} to {small}: {full} beat {other} at {sport}.", "At {sport}, {full} beat {other} by {n} to {small}."],
     [("winner|name|first", "string", "full"), ("loser|opponent|against|second", "string", "other"), ("sport|game", "string", "sport"), ("winner_score|score|points", "integer", "n"), ("loser_score|other_score", "integer", "small")]),
    (["{full} borrowed \"{title}\" and must bring it back by {mday}.", "The book \"{title}\" was borrowed by {full} until {mday}.", "Until {mday}, {full} may keep the book \"{title}\"."],
     [("reader|name|borrower|person", "string", "full"), ("title|book", "string", "title"), ("due|until|date|return_date", "string", "mday")]),
]
NEST = {"full": ["person", "owner", "customer", "who", "human"], "town": ["address", "place", "location", "home"], "day": ["when", "time", "schedule"], "thing": ["item", "product", "object"], "pet": ["animal", "pet"], "job": ["work"]}


def _values(r: random.Random, w: bool) -> dict:
    v = _person(r, w)
    pet, job, colour = r.choice(kinds.PETS + kinds.FARM[:6] + kinds.BIRDS[:4]), r.choice(kinds.JOBS), r.choice(kinds.COLOURS)
    t1, t2 = r.sample([x for x in kinds.FRUITS + kinds.TOOLS[:10] + kinds.CLOTHES[:6] + kinds.DESSERTS[-6:] if " " not in x and x not in ("pliers", "scissors", "sheep")], 2)
    items = r.sample(kinds.TOYS[:8] + kinds.CLOTHES[:14] + kinds.FRUITS + kinds.KITCHENWARE[:10], r.randint(2, 5))
    friends = [n for n, _ in names.people(r, r.randint(2, 4), w)]
    n, n2 = r.randint(2, 30), r.randint(2, 30)
    yes1, yes2 = r.random() < 0.5, r.random() < 0.5
    told = [a(i) for i in items] if r.random() < 0.5 else items
    words = r.random() < 0.2
    towns = [names.town(r, w), names.town(r, w)]
    while towns[0] == towns[1]:
        towns[1] = names.town(r, w)
    v |= {"age": r.randint(4, 99), "town": towns[0], "town2": towns[1], "job": job, "ajob": a(job), "k": r.choice((r.randint(2, 99), r.randint(100, 999))), "pet": pet, "apet": a(pet),
          "petname": names.person(r, w, 0.5)[0], "n": number_word(n) if words and n <= 20 else n, "n2": number_word(n2) if words and n2 <= 20 else n2, "int_n": n, "int_n2": n2, "things": plural(t1), "things2": plural(t2), "day": r.choice(DAYS),
          "hour": f"{r.randint(1, 12)}:{r.choice(('00', '15', '30', '45'))}", "room": r.choice(kinds.ROOMS + ["big hall", "red room", "church", "station"]), "colour": colour, "acolour": a(colour),
          "thing": r.choice(kinds.CLOTHES[:12] + kinds.FURNITURE[:14] + kinds.TOYS[:8] + kinds.KITCHENWARE[:10]), "mday": f"{r.choice(MONTHS)} {r.randint(1, 28)}", "siblings": r.choice(("brothers", "sisters", "cousins", "children")),
          "veh": r.choice(["train", "bus", "boat", "ferry", "plane", "car", "tram", "bicycle", "ship"]), "temp": r.randint(-15, 38), "weather": r.choice(kinds.WEATHERS), "wind": r.choice(("strong", "light", "no", "cold", "warm", "gentle")),
          "instr": r.choice(kinds.INSTRUMENTS), "plays": r.choice(("plays", "studies", "teaches")), "is_member": yes1, "member": "a member" if yes1 else "not a member", "is_open": yes2, "open": "open" if yes2 else "closed",
          "items": items, "l": join(told), "friends": join(friends), "friends_list": friends, "dec": f"{r.randint(0, 40)}.{r.randint(1, 9)}", "phone": "-".join(str(r.randint(10, 999)) for _ in range(2)),
          "sport": r.choice(kinds.SPORTS), "other": names.person(r, w, 0.4)[0], "small": r.randint(0, 9), "title": fill(r, "The [Old|Silent|Last|Golden|Lost|Secret|Blue|Winter] [{x}|{y}]", {"x": r.choice(kinds.ANIMALS).title(), "y": r.choice(kinds.LANDSCAPE + kinds.BUILDINGS).title()})}
    return v


def _typed(slot: str, kind: str, v: dict):
    value = v.get("int_" + slot, v[slot])
    if kind == "number":
        return float(value)
    return value


_TYPE_WORDS = {"string": ["string"] * 5 + ["text", "str"], "integer": ["integer"] * 4 + ["int", "number", "whole number"], "boolean": ["boolean"] * 3 + ["bool", "true or false"], "number": ["number", "number", "float"], "list of strings": ["list of strings", "list of strings", "array of strings", "list"]}

ASK = ["Extract {d} as JSON: {s}", "Extract the fields {d} as JSON from this sentence: {s}", "From the sentence below, extract {d} as JSON.\n\n{s}", "{s}\n\nGive me {d} as JSON.", "Return a JSON object with {d}.\n\n{s}",
       "Turn this into JSON with the keys {d}: {s}", "Write JSON with the keys {d} for this sentence: {s}", "Read the sentence and fill in a JSON object with {d}.\nSentence: {s}", "Sentence: {s}\nKeys: {d}\nAnswer with JSON.",
       "Text: {s}\nExtract {d} as JSON.", "What are {d} in this sentence? Answer in JSON. {s}", "[Can|Could] you extract {d} from \"{q}\" as JSON?", "JSON please, keys {d}: {s}", "Make a JSON object with keys {d} out of this: {s}",
       "Extract as JSON with keys {d}: {s}", "{s} Extract {d} as JSON.", "Extract JSON with {d} from: {s}", "Extract {d} from the following text as JSON.\n{s}"]
SHAPED = ["Fill in this JSON from the sentence.\n{d}\n{s}", "{s}\n\nAnswer with JSON in this form: {d}", "Extract as JSON in the form {d}: {s}", "Use this format: {d}\nSentence: {s}", "Extract the data as {d}\n\n{s}", "Schema: {d}\nText: {s}", "Return JSON like {d} for: {s}"]


def extraction(rng, want_held):
    sentences, fields = rng.choice(RECORDS)
    v = _values(rng, want_held)
    v["things_key"], v["things2_key"] = v["things"], v["things2"]
    sentence = fill(rng, pick(rng, sentences), v)
    sentence = sentence[0].upper() + sentence[1:]
    # keys: distinct names, some fields left out now and then, in any order
    chosen = rng.sample(fields, len(fields)) if rng.random() < 0.5 else list(fields)
    if len(chosen) > 2 and rng.random() < 0.35:
        chosen.pop(rng.randrange(len(chosen)))
    if len(chosen) > 1 and rng.random() < 0.08:
        chosen.pop(rng.randrange(len(chosen)))
    entries, used = [], set()
    for keynames, kind, slot in chosen:
        options = [k for k in fill(rng, keynames.replace("|", "\0"), v).split("\0") if k not in used] or [slot + "_x"]
        key = options[0] if rng.random() < 0.4 else rng.choice(options)
        used.add(key)
        value = _typed(slot, kind, v)
        if kind == "integer" and rng.random() < 0.1:
            kind, value = "string", str(v[slot])
        entries.append((key, kind, value, slot))
    obj: dict = {}
    nested = None
    if len(entries) >= 3 and rng.random() < 0.4:
        size = rng.choice((1, 2, 2)) if len(entries) == 3 else rng.choice((2, 2, 3))
        start = rng.randrange(len(entries) - size + 1)
        inside = entries[start:start + size]
        names_ = [k for e in inside for k in NEST.get(e[3], [])] or ["details", "data", "info"]
        outer = rng.choice([k for k in names_ + ["details", "info"] if k not in used])
        nested = (outer, inside)
        entries = entries[:start] + [(outer, "object", inside, "")] + entries[start + size:]
    for key, kind, value, _ in entries:
        obj[key] = {k: val for k, _, val, _ in value} if kind == "object" else value
    answer = json.dumps(obj, ensure_ascii=False)
    say = {k: rng.choice(w) for k, w in _TYPE_WORDS.items()}
    if nested or rng.random() < 0.3:
        def shape(es):
            return "{" + ", ".join(f'"{k}": ' + (shape(val) if kind == "object" else say[kind]) for k, kind, val, _ in es) + "}"
        spec, form = shape(entries), pick(rng, SHAPED)
        if nested and rng.random() < 0.35:
            flat = [f"{k} ({say[kind]})" if kind != "object" else f"{k} (object with " + join([f"{k2} ({say[kind2]})" for k2, kind2, _, _ in val]) + ")" for k, kind, val, _ in entries]
            spec, form = ", ".join(flat), pick(rng, ASK)
    else:
        typed = rng.random() < 0.6 or any(kind != "string" and isinstance(val, str) or kind == "string" and str(val).isdigit() for _, kind, val, _ in entries)
        parts = [f"{k} ({say[kind]})" if typed else k for k, kind, _, _ in entries]
        spec = join(parts) if rng.random() < 0.5 else ", ".join(parts)
        form = pick(rng, ASK)
    if "[" in form:
        form = form.replace("[Can|Could]", rng.choice(("Can", "Could")))
    prompt = form.replace("{d}", spec).replace("{s}", sentence).replace("{q}", sentence.rstrip("."))
    return Sample("JSON", turns((prompt, answer)), check="json", expect={"value": obj})


TASKS = {"JSON": extraction}
