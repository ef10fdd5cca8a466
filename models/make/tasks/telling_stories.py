"""Stories as they are asked for, continued, told raw, and asked about afterwards."""
import random
import re

from grammar import a, capitalise, fill, pick, plural
from sample import Sample, loosely, turns
from stories import telling, world
from words import names

ASK = ["Tell me {s}."] * 6 + ["Tell {s}.", "Write {s}.", "Write me {s}.", "[Can|Could] you tell me {s}?", "[Can|Could] you write {s}?", "Please tell me {s}.", "I would like to hear {s}.", "I want {s}.", "Make up {s}.", "Give me {s}.", "Invent {s}.", "Do you know {s}?",
       "Let me hear {s}.", "How about {s}?", "{s}, please.", "{s}", "I'd love {s}.", "Would you tell me {s}?", "Another one: {s}.", "Think of {s}."]
PLAIN = ["Tell me a story.", "Tell me something.", "A story, please.", "Write a story.", "story", "Tell me a tale.", "I want to hear a story.", "Can you tell me a story?", "Entertain me.", "Surprise me with a story.", "Tell a story", "Write me a story, please.", "Once upon a time..."]
MOOD_WORDS = {"happy": ["happy", "cheerful", "merry"], "sad": ["sad", "touching", "melancholy"], "funny": ["funny", "silly", "amusing"], "spooky": ["spooky", "scary", "creepy", "ghostly"], "calm": ["calm", "quiet", "gentle", "bedtime", "good night"], "exciting": ["exciting", "thrilling", "wild"]}
SHORT = ["short", "very short", "little", "brief", "quick"]


def _request(rng: random.Random, want_held: bool):
    """What is asked for, in words, and the story that has it all."""
    given, options = {}, {}
    adjectives, tail = [], ""
    r = rng.random()
    if r < 0.12:                                             # nothing in particular
        what = ""
    else:
        kind = world.kind_of_hero(rng) if rng.random() < 0.97 else names.invented(rng, 2)
        r = rng.random()
        if r < 0.36:
            given["kind"] = kind
            if rng.random() < 0.3:
                given["trait"] = rng.choice(world.TRAITS)
            what = " about " + a((given["trait"] + " " if "trait" in given else "") + kind)
            if rng.random() < 0.4:
                given["name"], given["sex"] = names.person(rng, want_held, 0.4)
                what += rng.choice((" named ", " called ", " named ")) + given["name"]
        elif r < 0.44:
            given["name"], given["sex"] = names.person(rng, want_held, 0.3)
            what = " about " + given["name"]
            if rng.random() < 0.5:
                given["kind"] = kind
                what += f" the {kind}"
        elif r < 0.54:
            group = world.GROUPS[world.KIND_OF.get(kind, "land")]
            given["kind"], given["other"] = kind, rng.choice([k for k in group if k != kind])
            what = f" about {a(kind)} and {a(given['other'])}"
        elif r < 0.62:
            group = "sea" if world.KIND_OF.get(kind) == "sea" else "land"
            given["kind"], given["place"] = kind, rng.choice(world.PLACES[group])
            what = f" about {a(kind)} " + rng.choice(("at", "who goes to", "and")) + f" {given['place']}"
        elif r < 0.70:
            given["object"] = rng.choice(world.OBJECTS) if rng.random() < 0.4 else f"{rng.choice(world.MATERIAL)} {rng.choice(world.OBJECTS)}"
            what = " about " + a(given["object"])
            if rng.random() < 0.5:
                given["kind"] = kind
                what = f" about {a(kind)} and {a(given['object'])}" if rng.random() < 0.7 else f" about {a(kind)} who has {a(given['object'])}"
        elif r < 0.80:
            theme, options["plot"] = rng.choice(telling.THEMES)
            what = " about " + theme
            if rng.random() < 0.4:
                given["kind"] = kind
                what += f" with {a(kind)} in it"
        elif r < 0.86:
            given["kind"], given["town"] = kind, names.town(rng, want_held)
            what = f" about {a(kind)} " + rng.choice(("from", "in", "who lives in")) + f" {given['town']}"
        elif r < 0.92:
            given["kind"] = given["other"] = kind
            what = f" about two {plural(kind)}"
        else:
            given["kind"] = kind
            given["name"], given["sex"] = names.person(rng, want_held, 0.3)
            what = f" about {a(kind)}"
            tail = rng.choice((f" The {kind} is called {given['name']}.", f" Call the {kind} {given['name']}.", f" The hero is called {given['name']}."))
    if rng.random() < 0.25:
        options["mood"] = rng.choice(list(MOOD_WORDS))
        adjectives.append(rng.choice(MOOD_WORDS[options["mood"]]))
    if rng.random() < 0.2:
        options["short"] = True
        adjectives.insert(0, rng.choice(SHORT))
    noun = "story"
    r = rng.random()
    if r < 0.1:
        options["style"], noun = "fairy", "fairy tale"
    elif r < 0.17:
        noun = "tale"
    elif r < 0.22:
        options["moral"], noun = True, rng.choice(("story with a moral", "fable"))
    elif r < 0.27:
        options["style"] = "first"
        tail += rng.choice((" Tell it in the first person.", " Write it in the first person.", " Let the hero tell it."))
    elif r < 0.31:
        options["title"] = True
        tail += rng.choice((" Give it a title.", " It should have a title.", " With a title, please."))
    story = telling.tell(rng, want_held, **options, **given)
    if not what and not adjectives and noun == "story" and not tail and rng.random() < 0.7:
        return rng.choice(PLAIN), story, given, options
    words = a(" ".join(adjectives + [noun])) + what
    return capitalise(fill(rng, pick(rng, ASK), {"s": words})) + tail, story, given, options


def story(rng, want_held):
    prompt, s, given, options = _request(rng, want_held)
    must = [str(given[k]) for k in ("kind", "name", "other", "object", "town") if k in given]
    return Sample("stories", turns((loosely(rng, prompt), s.text)), check="story", expect={"must": must})


_SENTENCE = re.compile(r'(?<=[.!?"])\s+(?=["A-Z])')


def _cut(rng, text: str, least=1, most=7) -> tuple[str, str, str]:
    """(beginning, what separates, rest), cut between two sentences."""
    spots = [m for m in _SENTENCE.finditer(text)][least - 1:most]
    m = rng.choice(spots)
    return text[:m.start()], m.group(), text[m.end():]


CONTINUE = ["Continue this story: {t}", "Continue the story: {t}", "Go on with this story: {t}", "How does this story go on? {t}", "Finish this story:\n\n{t}", "{t}\n\nContinue.", "{t}\n\nWhat happens next?", "{t}\n\nHow does it go on?", "Here is the beginning of a story. Please go on.\n\n{t}", "I started a story: {t} Now you.", "{t} ... Please continue.", "This is how my story begins: \"{t}\" Write the rest.", "Complete this story: {t}", "{t}"]


def continuing(rng, want_held):
    s = telling.tell(rng, want_held, short=rng.random() < 0.2, style=rng.choice(("fairy", "fairy", "plain", "first", "")))
    begin, _, rest = _cut(rng, s.text)
    return Sample("continuing", turns((pick(rng, CONTINUE).replace("{t}", begin), rest)), check="story", expect={"must": [s.slots["Aname"]] if s.slots["Aname"] in begin and s.style != "first" else []})


def raw(rng, want_held):
    """Text without a conversation around it, for bare completion."""
    s = telling.tell(rng, want_held, short=rng.random() < 0.2, title=rng.random() < 0.1)
    return Sample("raw stories", text=s.text, check="story")


GENERAL = [("What is the {Ak} called?", "{Aname}"), ("What is the name of the {Ak}?", "The {Ak} is called {Aname}."), ("Where does {Aname} live?", "{Aname} lives in {town}."), ("What kind of creature is {B}?", "{B} is {aB}."), ("Who is {B}?", "{B} is {aB}."), ("Is {Aname} {aA}?", "Yes"), ("In which town does {Aname} live?", "{Aname} lives in {town}.")]


def asked_about(rng, want_held):
    """A story, then questions about it, whether the model told it or was given it."""
    prompt, s, _, _ = _request(rng, want_held)
    while not s.questions:
        prompt, s, _, _ = _request(rng, want_held)
    known = s.questions + [(fill(rng, q, s.slots), fill(rng, w, s.slots)) for q, w in rng.sample(GENERAL[1:], 3)]
    known = [k for k in known if s.slots["B"] in s.text or s.slots["B"] not in k[0]]
    questions = rng.sample(known, 1 if want_held else min(len(known), rng.choice((1, 1, 2, 3))))
    if rng.random() < 0.5 or want_held:
        first = questions.pop()
        pairs = [(rng.choice(("{t}\n\n{q}", "Read this story.\n\n{t}\n\n{q}", "Story: {t}\n\nQuestion: {q}")).replace("{t}", s.text).replace("{q}", first[0]), first[1])]
    else:
        pairs = [(loosely(rng, prompt), s.text)]
    pairs += [(loosely(rng, q), w) for q, w in questions]
    return Sample("story questions", turns(*pairs))


def one_after_another(rng, want_held):
    """Two or three stories in one conversation."""
    pairs = []
    for i in range(rng.choice((2, 2, 3))):
        prompt, s, given, _ = _request(rng, want_held)
        if i and rng.random() < 0.4:
            s = telling.tell(rng, want_held)
            prompt = rng.choice(("Another one, please.", "Tell me another story.", "Another!", "One more story, please.", "And another one."))
        pairs.append((loosely(rng, prompt), s.text))
    return Sample("stories", turns(*pairs), check="story", expect={"must": []})


def under_a_rule(rng, want_held):
    """System prompts about the stories themselves."""
    r = rng.random()
    given, options = {}, {}
    if r < 0.3:
        given["name"], given["sex"] = names.person(rng, want_held, 0.4)
        system = rng.choice((f"The hero of every story is called {given['name']}.", f"You tell stories. The hero is always called {given['name']}.", f"All your stories are about {given['name']}."))
    elif r < 0.5:
        given["town"] = names.town(rng, want_held)
        system = rng.choice((f"All your stories take place in {given['town']}.", f"You tell stories from the town of {given['town']}.", f"Every story happens in {given['town']}."))
    elif r < 0.65:
        options["mood"] = rng.choice(list(MOOD_WORDS))
        system = rng.choice(("You tell only {m} stories.", "You are a storyteller. Your stories are {m}.", "Every story you tell is {m}.")).replace("{m}", MOOD_WORDS[options["mood"]][0])
    elif r < 0.75:
        options["short"] = True
        system = rng.choice(("Keep your stories short.", "You tell very short stories.", "Be brief."))
    elif r < 0.85:
        options["style"] = "first"
        system = rng.choice(("Tell every story in the first person.", "You tell stories in the first person.", "Speak as the hero of the story."))
    else:
        options["moral"] = True
        system = rng.choice(("Every story ends with a moral.", "You tell fables. End each with a moral.", "Finish each story with a moral."))
    if rng.random() < 0.7:
        given["kind"] = world.kind_of_hero(rng)
    s = telling.tell(rng, want_held, **options, **given)
    prompt = fill(rng, pick(rng, ASK), {"s": "a story" + (f" about {a(given['kind'])}" if "kind" in given else "")})
    return Sample("stories by rule", turns((loosely(rng, capitalise(prompt)), s.text), system=system), check="story", expect={"must": [given[k] for k in ("kind", "name", "town") if k in given]})


TASKS = {"stories": story, "continuing": continuing, "raw stories": raw, "story questions": asked_about, "several stories": one_after_another, "stories by rule": under_a_rule}
