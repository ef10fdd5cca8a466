"""Letters of a word, forwards and backwards. Answers are written letter by letter, so that every letter is a token of its own.

A model that reads pieces of words can only learn the letters of a piece by being told them, so every word of the corpus is
spelled somewhere; invented words teach that the rule has no end.
"""
import random
import re

from grammar import fill, pick
from sample import Sample, loosely, turns
from split import held
from stories import telling
from words import kinds, names

REAL = [w for w in dict.fromkeys(sum(kinds.KINDS.values(), []) + kinds.ADJECTIVES + kinds.VERBS + names.GIRLS + names.BOYS + names.TOWNS + names.SURNAMES) if w.isalpha()]
COMMON = [w for w in """time year people way day man thing woman life child world school state family student group country problem hand part place case week company
system program question work government number night point home water room mother area money story fact month lot right study book eye job word business issue side
kind head house service friend father power hour game line end member law car city community name president team minute idea kid body information back parent face
others level office door health person art war history party result change morning reason research girl guy moment air teacher force education hello goodbye thanks
happy sad little big good bad great small large long short young old new early late high low light dark warm cold hot fast slow hard soft sweet bitter strong weak
computer window garden table letter paper music summer winter spring autumn sunday monday friday planet rocket engine silver golden purple orange yellow green
button candle mirror pocket basket bottle ladder hammer bridge street forest island castle village market station village harbour mountain river ocean desert valley
begin believe bring build carry choose close come dance decide draw dream drink drive enter explain fall feel fight find finish follow forget give grow happen hear help
hold hope keep know laugh learn leave listen live look lose love make meet move need open pay play pull push read remember ride run say see sell send show sing sit sleep
speak spell stand start stay stop swim take talk teach tell think throw travel try turn understand wait walk want wash watch wear win wish wonder write above across after again
against almost alone along already always among another anything around because become before behind below beside between beyond both careful center certain clean clear
common complete corner couple cover danger different dinner during easy either empty enough every example famous favorite favourite final flower forward funny future
gentle giant glass ground heart heavy honest hungry important inside interest language leader leather lesson magic market matter maybe middle million mistake model
nature neighbor neighbour never noise nothing object often only outside perfect picture pleasure pretty promise public quick quiet ready really round second secret
several shadow simple single smile something special strange strawberry banana elephant giraffe butterfly umbrella dictionary chocolate breakfast birthday adventure
surprise tomorrow yesterday together treasure trouble useful usually visit voice weather welcome whisper wisdom yellow zebra level radar noon civic kayak racecar
mississippi alphabet keyboard screen mouse internet server token stream weir rill""".split()]
# every word of the stories, too: whatever is one token must have been spelled once
TOLD = sorted({w.lower() for text in [t for plot in telling.PLOTS.values() for t in (plot[0], *plot[1])] + sum(telling.MOODS.values(), []) + sum(telling.CLOSINGS.values(), []) + sum(telling.OPENINGS.values(), [])
               for w in re.findall(r"[A-Za-z]{2,}", re.sub(r"\{\w+\}", " ", text))})
REAL = list(dict.fromkeys(REAL + COMMON + TOLD))

# Real words that are never spelled in training, and hardly stand in it at all: held out.
UNSEEN = [w for w in """cactus helmet napkin blizzard parachute lantana gravel sponge turban velvet cobweb dolphin igloo jungle kimono lagoon magnet nectar origami pebble quiver rodeo saddle tunnel vacuum walnut yogurt zipper avocado bamboo
canyon dragonet eclipse fossil gazette hammock insect jigsaw kernel lobby mammal noodle orbit panther quartz radio saxophone tadpole utensil volcano wigwam abacus beacon cobra denim ember fungus garage husky ivory jelly kayak lava mitten nylon oxygen pillar
quota rumba syrup tornado urban vinegar wallet xenon yodel zigzag plastic orchard paprika monsoon labyrinth kangaroo hazelnut gondola ferry emblem diploma cabaret badminton acrobat vertigo triumph shuttle python pumpkin printer pixel module laptop cursor
buffer packet socket router kettle drummer farmer grocery hospital tractor subway taxi ticket travel vendor vowel wagon wrist zinc blossom candid dapper elbow frosty glimmer harvest index jovial""".split() if w not in set(REAL)]

BACK = ["Spell '{w}' backwards."] * 2 + ["Spell {w} backwards.", "Spell \"{w}\" backwards.", "Spell the word {w} backwards.", "Spell the word '{w}' backwards.", "Write '{w}' backwards.",
        "How do you spell {w} backwards?", "Reverse the word {w}.", "Reverse the letters of '{w}'.", "What is {w} backwards?", "What is '{w}' spelled backwards?",
        "[Can|Could] you spell {w} backwards?", "Write the letters of {w} in reverse order.", "{w} backwards", "Backwards: {w}", "Say {w} backwards.", "Reverse '{w}'.", "Reverse: {w}",
        "Spell backwards: {w}", "Write {w} in reverse.", "Turn the word \"{w}\" around.", "Spell {w} in reverse.", "Please spell {w} backwards.", "How is '{w}' written backwards?"]
FORTH = ["Spell '{w}'.", "Spell {w}.", "Spell \"{w}\".", "Spell the word {w}.", "How do you spell {w}?", "[Can|Could] you spell {w}?", "Write {w} letter by letter.", "What are the letters of '{w}'?",
         "Spell: {w}", "Spell out '{w}'.", "How is {w} spelled?", "Please spell {w}."]
LENGTH = ["How many letters are in '{w}'?", "How many letters does {w} have?", "How many letters are in the word {w}?", "Count the letters in {w}.", "How long is the word '{w}'?", "How many letters are there in \"{w}\"?"]
FIRST = ["What is the first letter of '{w}'?", "What letter does {w} begin with?", "What letter does {w} start with?", "First letter of {w}?"]
LAST = ["What is the last letter of '{w}'?", "What letter does {w} end with?", "Last letter of {w}?", "Which letter is at the end of {w}?"]
JOINED = ["Put these letters together: {l}", "Which word do these letters make: {l}", "Join the letters {l}.", "What word is {l}?", "Read these letters as one word: {l}"]


def _word(rng: random.Random) -> str:
    """A real word or one that nobody has read before."""
    r = rng.random()
    if r < 0.55:
        return rng.choice(REAL)
    while True:
        word = names.spliced(rng, REAL) if r < 0.85 else names.invented(rng, rng.choice((1, 2, 2, 3, 3, 4)))
        if len(word) <= 12 and word not in _UNSEEN:
            return word if rng.random() < 0.85 else word.capitalize()


_UNSEEN, _REAL = set(UNSEEN), set(REAL)


def _held_word(rng, want_held):
    """All the usual words are learnt; held out are UNSEEN and one invented word in sixteen."""
    while True:
        word = rng.choice(UNSEEN) if want_held and rng.random() < 0.5 else _word(rng)
        out = word in _UNSEEN or word not in _REAL and held("spell", word.lower())
        if len(word) > 1 and out == want_held:
            return word.capitalize() if word.islower() and rng.random() < 0.08 else word


def backwards(rng, want_held):
    word = _held_word(rng, want_held)
    question = fill(rng, pick(rng, BACK), {"w": word})
    if not question.startswith(word):           # a capital taken from the word itself would change the answer
        question = loosely(rng, question)
    return Sample("spelling backwards", turns((question, " ".join(reversed(word)))))


def forwards(rng, want_held):
    word = _held_word(rng, want_held)
    if rng.random() < 0.15:
        return Sample("spelling", turns((fill(rng, pick(rng, JOINED), {"l": " ".join(word)}), word)))
    return Sample("spelling", turns((loosely(rng, fill(rng, pick(rng, FORTH), {"w": word})), " ".join(word))))


def letters(rng, want_held):
    word = _held_word(rng, want_held)
    kind = rng.randrange(4)
    if kind < 2:
        return Sample("letters", turns((fill(rng, pick(rng, LENGTH), {"w": word}), str(len(word)))))
    question = fill(rng, pick(rng, FIRST if kind == 2 else LAST), {"w": word})
    return Sample("letters", turns((question, word[0] if kind == 2 else word[-1])))


BOTH = ["Spell {w}, then spell it backwards.", "Spell '{w}' forwards and backwards.", "Spell {w} forwards and then backwards."]


def both_ways(rng, want_held):
    """One after the other, in one answer or in two turns."""
    word = _held_word(rng, want_held)
    forth, back = " ".join(word), " ".join(reversed(word))
    if rng.random() < 0.4:
        return Sample("both ways", turns((fill(rng, pick(rng, BOTH), {"w": word}), forth + ", " + back)))
    if rng.random() < 0.5:
        forth, back = back, forth
    first = pick(rng, FORTH if forth[0] == word[0] and forth == " ".join(word) else BACK)
    return Sample("both ways", turns((fill(rng, first, {"w": word}), forth), (rng.choice(("And backwards?", "Now backwards.", "Now the other way round.", "Backwards, please.", "Now reverse it.") if forth == " ".join(word) else ("And forwards?", "Now forwards.", "Now the other way round.", "Now reverse it.")), back)))


TASKS = {"both ways": both_ways, "spelling backwards": backwards, "spelling": forwards, "letters": letters}
