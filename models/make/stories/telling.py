"""From a plot to a text.

A plot is a text: paragraphs separated by empty lines are its stages, the lines of a stage are ways to tell it (one is taken).
A line that begins with "?" belongs to a stage that a short story leaves out. Slots come from world.py.
"""
import random
import re
from dataclasses import dataclass

from grammar import capitalise, fill, pick, plural
from stories import plots_daring, plots_finding, plots_quiet, world

MOODS = {
    "happy": ["The sun came out just then.", "Somewhere a bird began to sing.", "It was the kind of day on which everything smells of bread.", "The wind smelled of summer.", "A dog barked happily in the distance.", "Everything looked a little brighter than before."],
    "sad": ["A cold rain had begun to fall.", "The streets were empty.", "For a while nobody spoke.", "It was very quiet.", "The light was grey, and so were the thoughts.", "A single leaf came down from the tree.", "{A} felt a lump in {Ahis} throat."],
    "funny": ["At this point a goose walked by, carrying a spoon, but that is another story.", "{A} hiccuped three times.", "Somewhere somebody sneezed so hard that a hat flew off.", "A cow looked on and chewed, as if it had paid for a ticket.", "{A} tripped over {Ahis} own shadow, which was nobody's fault.", "The moon, who had seen a great deal, pretended not to look."],
    "spooky": ["A shutter banged, though there was no wind.", "Something rustled, and then it stopped rustling, which was worse.", "The shadows seemed to lean closer.", "An owl called twice and was silent.", "A cold breath of air went by.", "The lamp burned blue for a moment."],
    "calm": ["The evening was soft and slow.", "Far away a bell rang.", "The stars came out, one by one.", "The grass was full of small sounds.", "A warm wind went through the leaves, as if turning pages.", "The moon hung low, like a lamp somebody had left on."],
    "exciting": ["There was no time to lose.", "{As} heart beat faster.", "\"Quick!\" somebody shouted.", "Everything happened at once.", "{A} held {Ahis} breath.", "The ground seemed to shake."],
}
CLOSINGS = {
    "happy": ["And they were all happier than before.", "It was a good day to be alive.", "That night {A} fell asleep with a smile.", "And that, {Ahe} thought, was that."],
    "sad": ["Sometimes, when it rains, {A} still thought of it.", "Not everything was as before. But it was enough.", "{A} wiped {Ahis} eyes and looked up at the first star.", "It hurt a little, as good things sometimes do."],
    "funny": ["As for the goose with the spoon, nobody ever found out.", "And if the roof has not fallen in, they are laughing still.", "The cow, by the way, asked for its money back.", "And everyone had {food}, twice."],
    "spooky": ["But on foggy nights, they say, one can still hear a faint humming at {P}.", "Nobody ever went to {P} alone after dark again.", "And the lamp in the window burned until morning."],
    "calm": ["Then it was time to sleep. Good night.", "The stars stood over {town}, and everything was still.", "And soon the whole of {town} was asleep.", "{A} closed {Ahis} eyes, and the night was warm."],
    "exciting": ["What a day it had been!", "And the next adventure was already waiting around the corner.", "{A} could hardly wait for tomorrow."],
}
OPENINGS = {
    "fairy": ["Once upon a time there was {aA} named {A} who lived in {home} in {town}.", "Once upon a time, in the town of {town}, there lived {aA} called {A}.", "Long ago, when [animals could still talk|the moon was younger|wishes still worked], {aA} named {A} lived in {home} near {town}.", "There was once {aA} by the name of {A}, whose home was {home} in {town}.",
              "Once there was {aA} named {A}, and {Ahe} lived in {home}, not far from {town}.", "Once upon a time a {At} {Ak} called {A} lived in {home} in {town}.", "In a land [far away|beyond seven hills|where the rivers sing], in the town of {town}, lived {A} {theA}."],
    "plain": ["{A} was {aA} who lived in {home} in {town}.", "In {town}, in {home}, lived {aA} named {A}.", "{A} {theA} had lived in {town} for as long as anyone could remember.", "Everybody in {town} knew {A}, the {At} {Ak}.", "The {At}est {Ak} in {town} was called {A}.".replace("{At}est", "most {At}"), "{A} lived in {home}. {AHe} was {aA}, and a {At} one.",
              "It was {season} in {town}. {A}, {aA}, sat in {home} and looked out.", "Nobody knew where {A} {theA} had come from. One day {Ahe} was simply there, in {home} in {town}.", "If you ever come to {town}, ask for {A}. {AHe} is {aA}, and this is {Ahis} story."],
    "first": ["My name is {Aname}. I am {aA}, and I live in {home} in {town}.", "I am {Aname}, {aA} from {town}, and I want to tell you what happened to me.", "You may not believe this, but every word is true. I am {Aname}, {aA}, and it happened in {town}.", "I was still [young|new in {town}] when this happened. People called me {Aname}, and I was {aA}.",
              "Dear diary, today I must write everything down. I, {Aname}, {aA} of {town}, have had quite a time.", "It was {season}, and I, {Aname} {theA}, was living in {home} in {town}."],
}
TRAIT = ["{AHe} was [very|rather|quite|known to be] {At}[, and everyone knew it|, but {Ahe} did not know it {Aself}|].", "[Everyone agreed that|If one thing was certain, it was that] {Ahe} was {At}.", "{AHe} was a {At} {Ak}[, as {Ak2} go|]."]
TITLES = ["{Aname} and the {oT}", "The {oT}", "The {AtT} {AkT}", "{Aname} of {town}", "The {AkT} and the {BkT}", "{Aname} and {B}", "A {day} in {town}", "The {AkT} of {town}"]
ENDINGS = ["The end."] * 3 + ["And that is the end of the story.", "That is the story of {Aname}."]
BRIDGES = ["[That was how it stood|So it was] until one day.", "But this is what happened.", "And then everything changed.", "Now listen.", "This is [the story of one week in {season}|how it began]."]

PLOTS = {name: (plot, morals, questions, themes) for module in (plots_finding, plots_daring, plots_quiet) for name, plot, morals, questions, themes in module.PLOTS}
THEMES = [(theme, name) for name, (_, _, _, themes) in PLOTS.items() for theme in themes]
WITH_OBJECT = ["lost", "broken", "trade", "gift", "trick", "quarrel", "learn", "farewell", "mystery"]     # their {o} is sure to be named
_STAGES = {name: [[line for line in stage.strip().split("\n")] for stage in plot.strip().split("\n\n")] for name, (plot, *_) in PLOTS.items()}
_VERBS = {"is": "am", "has": "have", "does": "do", "hears": "hear", "smiles": "smile", "takes": "take", "says": "say", "knows": "know", "puts": "put", "counts": "count", "keeps": "keep", "looks": "look", "wants": "want", "goes": "go", "thinks": "think", "tells": "tell", "still counts": "still count", "still keeps": "still keep",
          "still thinks": "still think", "never goes": "never go", "sits": "sit", "lives": "live", "works": "work", "gets": "get", "visits": "visit", "writes": "write", "still": "still", "remembers": "remember", "wears": "wear", "sleeps": "sleep", "comes": "come"}
_FIRST = re.compile(r"\bI (still |never |always |often )?(" + "|".join(_VERBS) + r")\b")
_I_AND = re.compile(r"\bI and ([A-ZÀ-Ž]\w+)")
_ME = re.compile(r"\b(took|gave|to|with) I\b|\b(asked) I(?= what)|\b(for) I(?= every)")


@dataclass
class Story:
    text: str
    slots: dict
    plot: str
    mood: str
    style: str                      # fairy, plain, first
    questions: list[tuple[str, str]]
    moral: str = ""
    title: str = ""


def tell(rng: random.Random, want_held: bool, *, plot: str = "", mood: str = "", style: str = "", short: bool = False, moral: bool = False, title: bool = False, **given) -> Story:
    """One story. Everything not asked for is drawn; a trait that is given is sure to be named."""
    plot = plot or rng.choice(WITH_OBJECT if "object" in given else list(PLOTS))
    mood = mood or rng.choice(list(MOODS))
    style = style or rng.choice(("fairy", "fairy", "plain", "plain", "first"))
    slots = world.draw(rng, want_held, **given)
    slots |= {"oT": slots["o"].title(), "AtT": slots["At"].title(), "AkT": slots["Ak"].title(), "BkT": slots["Bk"].title(), "Ak2": plural(slots["Ak"])}
    me = style == "first"
    told = world.in_first_person(slots) if me else slots

    opening = pick(rng, OPENINGS[style])
    first = fill(rng, opening, told)
    if slots["At"] not in first and ("trait" in given or not short and rng.random() < 0.5):
        first += " " + fill(rng, pick(rng, TRAIT), told)
    if not short:
        if rng.random() < 0.7:
            first += " " + fill(rng, pick(rng, world.QUIRKS), told)
        if rng.random() < 0.25:
            first += " " + fill(rng, pick(rng, BRIDGES), told)
    paragraphs = [first]
    stages = [s for s in _STAGES[plot] if not (s[0].startswith("?") and (short or rng.random() < 0.45))]
    textures = rng.sample(MOODS[mood], 3)
    spots = set() if short else set(rng.sample(range(1, len(stages)), min(len(stages) - 1, rng.choice((1, 2, 2, 3)))))
    for i, stage in enumerate(stages):
        text = fill(rng, pick(rng, stage).lstrip("? "), told).strip()
        if i in spots and textures:
            texture = fill(rng, textures.pop(), told)
            text = texture + " " + text if rng.random() < 0.3 else text + " " + texture
        if short and i + 1 < len(stages) and rng.random() < 0.6 or not short and rng.random() < 0.2:
            paragraphs[-1] += " " + text
        else:
            paragraphs.append(text)
    last = fill(rng, pick(rng, CLOSINGS[mood]), told) if rng.random() < 0.6 else ""
    _, morals, questions, _ = PLOTS[plot]
    lesson = pick(rng, morals) if moral or rng.random() < 0.12 else ""
    if last:
        paragraphs[-1] += " " + last
    if lesson:
        paragraphs.append(rng.choice(("The moral of the story: ", "Moral: ", "")) + lesson if moral else lesson)
    elif rng.random() < 0.25:
        paragraphs.append(fill(rng, pick(rng, ENDINGS), slots))
    text = capitalise("\n\n".join(paragraphs))
    if me:
        text = _FIRST.sub(lambda m: "I " + (m.group(1) or "") + _VERBS[m.group(2)], text)
        text = _ME.sub(lambda m: m.group(0)[:-1] + "me", _I_AND.sub(r"\1 and I", text))
    name = capitalise(fill(rng, pick(rng, TITLES), slots)) if title else ""
    known = [] if me else [(fill(rng, q, slots), capitalise(fill(rng, w, slots))) for q, w in questions]
    return Story((name + "\n\n" if name else "") + text, slots, plot, mood, style, known, lesson, name)
