"""A small template language: `[a|b|c]` picks one of several, nested as deep as you like; `{name}` is filled in.

Templates are parsed once and kept, so that a million sentences cost a million walks over a short tuple.
"""
import functools
import random
import re


@functools.cache
def _parse(text: str) -> tuple:
    node, end = _parse_sequence(text, 0, top=True)
    assert end == len(text), text
    return node


def _parse_sequence(text: str, i: int, top: bool = False):
    """A run of literals (str), slots (one-tuple) and choices (list), up to '|' or ']'."""
    parts, literal = [], []

    def flush():
        if literal:
            parts.append("".join(literal))
            literal.clear()

    while i < len(text):
        ch = text[i]
        if ch in "|]" and not top:
            break
        if ch == "[":
            flush()
            options = []
            i += 1
            while True:
                option, i = _parse_sequence(text, i)
                options.append(option)
                if i >= len(text):
                    raise ValueError("unclosed [ in template: " + text)
                i += 1
                if text[i - 1] == "]":
                    break
            parts.append(options)
        elif ch == "{":
            flush()
            end = text.index("}", i)
            parts.append((text[i + 1:end],))
            i = end + 1
        else:
            literal.append(ch)
            i += 1
    flush()
    return tuple(parts), i


def _walk(node: tuple, rng: random.Random, slots: dict, out: list) -> None:
    for part in node:
        if type(part) is str:
            out.append(part)
        elif type(part) is tuple:
            value = slots[part[0]]
            out.append(value if type(value) is str else str(value))
        else:
            _walk(part[int(rng.random() * len(part))], rng, slots, out)


def fill(rng: random.Random, template: str, slots: dict | None = None) -> str:
    out: list[str] = []
    _walk(_parse(template), rng, slots or {}, out)
    return "".join(out)


def pick(rng: random.Random, options: list):
    return options[int(rng.random() * len(options))]


_SENTENCE_START = re.compile(r"(^|[.!?]\s+[\"]?|(?<!\.)\.[\"]\s+|\n[\"]?|^[\"])([a-z])")


_CARET = re.compile(r"\^([a-z]?)")


def capitalise(text: str) -> str:
    """A capital after every full stop and at the beginning; `^` asks for one anywhere else (after a closing quote)."""
    text = _CARET.sub(lambda m: m.group(1).upper(), text)
    return _SENTENCE_START.sub(lambda m: m.group(1) + m.group(2).upper(), text)


_AN = re.compile(r"^(?:[aeio]|u(?!ni|se|ti|kul)|hon|hour)", re.I)


def a(noun: str) -> str:
    return ("an " if _AN.match(noun) else "a ") + noun


_IRREGULAR = {"mouse": "mice", "goose": "geese", "foot": "feet", "tooth": "teeth", "sheep": "sheep", "deer": "deer", "fish": "fish",
              "ox": "oxen", "child": "children", "man": "men", "woman": "women", "wolf": "wolves", "leaf": "leaves", "knife": "knives",
              "shelf": "shelves", "calf": "calves", "scarf": "scarves", "loaf": "loaves", "dwarf": "dwarves", "elf": "elves",
              "bison": "bison", "salmon": "salmon", "trout": "trout", "postman": "postmen", "moose": "moose", "thief": "thieves",
              "ferryman": "ferrymen", "bread": "loaves of bread", "pair of boots": "pairs of boots", "potato": "potatoes", "tomato": "tomatoes"}


def plural(noun: str) -> str:
    if noun in _IRREGULAR:
        return _IRREGULAR[noun]
    if re.search(r"(?:s|x|z|ch|sh)$", noun):
        return noun + "es"
    if re.search(r"[^aeiou]y$", noun):
        return noun[:-1] + "ies"
    return noun + "s"


NUMBER_WORDS = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen twenty""".split()


def number_word(n: int) -> str:
    if n <= 20:
        return NUMBER_WORDS[n]
    tens = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()
    if n < 100:
        return tens[n // 10] + ("-" + NUMBER_WORDS[n % 10] if n % 10 else "")
    return NUMBER_WORDS[n // 100] + " hundred" + (" and " + number_word(n % 100) if n % 100 else "")


def join(items: list[str], last: str = " and ") -> str:
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + last + items[-1]


PRONOUNS = {"f": ("she", "her", "her", "hers", "herself"), "m": ("he", "him", "his", "his", "himself"), "n": ("it", "it", "its", "its", "itself"),
            "t": ("they", "them", "their", "theirs", "themselves")}


def pronoun_slots(prefix: str, sex: str) -> dict[str, str]:
    """{Ahe} {Ahim} {Ahis} {Ahers} {Aself} for prefix A, and the capital forms {AHe} {AHis}."""
    he, him, his, hers, self_ = PRONOUNS[sex]
    return {prefix + "he": he, prefix + "him": him, prefix + "his": his, prefix + "hers": hers, prefix + "self": self_,
            prefix + "He": he.capitalize(), prefix + "His": his.capitalize()}
