"""Who a story is about and where it happens: one draw gives every slot that the plots may use."""
import random

from grammar import a, pronoun_slots
from split import held
from words import kinds, names

_PEOPLE = kinds.JOBS + ["girl", "boy", "old woman", "old man", "princess", "prince", "student", "inventor", "grandmother", "grandfather", "traveller", "hermit", "beggar", "knight", "sculptor", "juggler", "schoolgirl", "schoolboy", "twin", "drummer"]
_LAND = [x for x in dict.fromkeys(kinds.WILD + kinds.FARM + kinds.PETS + kinds.BIRDS) if x not in ("goldfish", "kid goat", "guinea pig", "penguin", "kite")] + ["guinea pig", "penguin", "snail", "bee", "beetle", "cricket", "ladybird", "spider", "ant", "butterfly", "earthworm", "caterpillar", "firefly"]
_SEA = [x for x in dict.fromkeys(kinds.SEA + kinds.FISH[:10]) if x not in ("penguin", "turtle")] + ["mermaid", "sea turtle", "goldfish", "hermit crab"]
_WONDER = kinds.MONSTERS[:15] + ["robot", "snowman", "scarecrow", "tin soldier", "teapot", "lantern", "cloud", "rag doll", "little star", "garden gnome", "stone lion", "paper boat", "toy train", "shadow", "moonbeam", "raindrop", "pumpkin", "teddy bear", "puppet", "kite", "clock", "umbrella", "astronaut", "time traveller", "alien", "talking tree"]
BIRDS = set(kinds.BIRDS) - {"penguin", "ostrich"}
GROUPS = {g: list(dict.fromkeys(ks)) for g, ks in (("people", _PEOPLE), ("land", _LAND), ("sea", _SEA), ("wonder", _WONDER))}
KIND_OF = {k: g for g, ks in GROUPS.items() for k in ks}
_FEMALE = {"girl", "old woman", "princess", "grandmother", "schoolgirl", "hen", "cow", "witch", "mermaid"}
_MALE = {"boy", "old man", "prince", "grandfather", "schoolboy", "rooster", "bull", "wizard", "postman", "ferryman", "king"}

PLACES = {
    "land": [p for p in """the old mill|the dark forest|the stone bridge|the crooked lighthouse|the hill behind the village|the empty castle|the frozen lake|the market square|the orchard|the ruined tower|the wide marsh
|the cave above the river|the railway station|the harbour|the waterfall|the abandoned house|the great oak|the old quarry|the churchyard|the windmill|the meadow beyond the stream|the forgotten garden|the deep well
|the crossroads|the top of the mountain|the glass house|the island in the lake|the ferry landing|the clock tower|the edge of the desert|the snowy pass|the narrow valley|the beach of white stones|the library cellar|the old theatre
|the last farm|the foggy moor|the king's wood|the hollow hill|the boathouse|the silver mine|the beekeeper's cottage|the bell tower|the winter palace|the toy factory|the ruined abbey|the pine ridge|the salt flats""".replace("\n", "").split("|")],
    "sea": [p for p in """the coral reef|the sunken ship|the deep trench|the kelp forest|the old pier|the sea cave|the sandbank|the whale road|the drowned village|the rocky point|the harbour wall|the warm lagoon|the underwater garden
|the lost anchor|the blue grotto|the northern ice|the lighthouse rock|the pearl bank|the sunken bell|the quiet bay""".replace("\n", "").split("|")],
}
_HOMES = {
    "people": ["a small house by the river", "a room above the bakery", "a cottage at the edge of the forest", "a narrow house with a green door", "a house on the hill", "two rooms behind the shop", "a wooden house near the harbour", "an attic full of books", "a houseboat", "an old stone house", "a little house with a crooked chimney", "a flat above the clock shop"],
    "land": ["a cosy burrow under an oak", "a den among the rocks", "a hollow tree", "a barn with a leaking roof", "a hole under the hedge", "a shed behind the mill", "a nest of leaves", "a corner of the old stable", "a little cave", "a house of sticks and moss"],
    "bird": ["a nest in a tall pine", "a nest under the roof of the mill", "a hollow in an old oak", "a nest on the church tower", "a basket in the barn", "a nest by the river"],
    "sea": ["a cave under the waves", "a hole in the reef", "a garden of seaweed", "the cabin of a sunken ship", "a house of shells", "a crack in the harbour wall"],
    "wonder": ["a tower with no stairs", "a cave behind a waterfall", "a toy shop", "an old attic", "a house that nobody else could see", "a field of poppies", "the cellar of a castle", "a hut in the deep forest", "a box under the bed"],
}
MATERIAL = ["brass", "silver", "copper", "golden", "wooden", "old", "tiny", "blue", "red", "green", "glass", "iron", "painted", "ivory", "crooked", "shiny", "battered", "white", "striped", "tin"]
OBJECTS = """key whistle lantern compass bell ring watch locket spoon umbrella flute box coin medal button necklace mirror bracelet lamp pipe pendant thimble brooch hat scarf kettle telescope knife comb buckle
cup drum spyglass hourglass music-box""".split()
SECOND = ["music box", "red bicycle", "telescope", "rocking chair", "silver violin", "warm winter coat", "snow globe", "book of maps", "pair of skates", "fur hat", "blue lantern", "painted teapot", "golden bell", "glass marble", "sailing boat", "kite with a long tail", "wooden horse", "crystal cup",
          "silver spoon", "quilt of many colours", "brass trumpet", "book of songs", "garden chair", "weather vane", "chess set", "cuckoo clock", "paper lantern", "harp", "little accordion", "velvet cloak"]
FOOD = ["plum cake", "bread and honey", "pea soup", "apple pie", "hot porridge", "pancakes", "cheese and onions", "blackberry jam", "mushroom stew", "roast chestnuts", "cinnamon rolls", "potato soup", "cherry tart", "gingerbread", "warm bread", "pumpkin soup", "nut cake", "dumplings", "lemon cake", "barley broth"]
MACHINES = ["the town clock", "the great mill wheel", "the carousel", "the lamp of the lighthouse", "the fountain on the square", "the old organ", "the tower bell", "the little steam train", "the water pump", "the weather machine", "the printing press", "the street lamp on the square"]
TRAITS = kinds.ADJECTIVES
QUIRKS = ["{AHe} [always wore two different socks|hummed when {Ahe} was thinking|collected buttons|was never on time|talked to the moon|knew a song for every kind of weather|could whistle in two voices|counted the stars every night].",
          "Nobody in {town} [told better jokes|made better soup|could sit still for so long|asked so many questions|had such cold feet|laughed as loudly].", "{AHe} [had a laugh that could be heard three streets away|kept a list of things to be glad about|liked the smell of rain|hated onions|was afraid of nothing but geese].",
          "Every {day2} {Ahe} [baked {food}|swept the steps|wrote a letter to {Ahis} aunt|polished the windows|went for a long walk].", "People said that {Ahe} was too {At}, but {Ahe} did not [mind|think so].", "{AHe} did not have much, but {Ahe} had [time|a good heart|a window to the west|a chair by the fire].",
          "{AHis} favourite things were [rain on the roof and {food}|long evenings and short letters|the smell of wood and the sound of bells|old maps and new pencils|clean sheets and the first snow].", "Some called {Ahim} {At}, others called {Ahim} [strange|a dreamer|the best neighbour one could have]."]


def kind_of_hero(rng: random.Random) -> str:
    return rng.choice(GROUPS[rng.choice(("people", "people", "land", "land", "land", "sea", "wonder"))])


def _sex(rng, kind):
    return "f" if kind in _FEMALE else "m" if kind in _MALE else rng.choice("fm")


def _moves(kind: str, group: str) -> str:
    return "flew" if kind in BIRDS or kind in ("fairy", "butterfly", "bee", "bat", "dragon", "phoenix") else "swam" if group == "sea" else "walked"


def _someone(rng, letter, kind, name, sex, trait):
    he = pronoun_slots(letter, sex)
    return he | {letter: name, letter + "name": name, letter + "s": name + "'s", letter + "k": kind, "a" + letter: a(kind), "the" + letter: "the " + kind, letter + "t": trait, "walk" + letter: _moves(kind, KIND_OF.get(kind, "land"))}


def draw(rng: random.Random, want_held: bool, **given) -> dict:
    """Every slot of a story. `given` may fix kind, name, sex, trait, other (the kind of B), object, place, town."""
    kind = given.get("kind") or kind_of_hero(rng)
    group = KIND_OF.get(kind, "land")
    # the others come from the same world; a place belongs to the water or to the land
    pool = GROUPS[group] if rng.random() < 0.75 or group == "sea" else GROUPS["land"] + GROUPS["people"]
    others = [k for k in rng.sample(pool, 5) if k != kind]
    if given.get("other"):
        others = [given["other"]] + [k for k in others if k != given["other"]]
    traits = rng.sample(TRAITS, 3)
    sexes = [given.get("sex") or _sex(rng, kind), _sex(rng, others[0]), _sex(rng, others[1])]
    called: list[str] = []
    for i, sex in enumerate(sexes):
        while len(called) <= i:
            name, s = (given["name"], sex) if i == 0 and given.get("name") else names.person(rng, want_held, 0.12 if i else 0.15)
            if s == sex and name not in called:
                called.append(name)
    slots = _someone(rng, "A", kind, called[0], sexes[0], given.get("trait") or traits[0])
    slots |= _someone(rng, "B", others[0], called[1], sexes[1], traits[1]) | _someone(rng, "C", others[1], called[2], sexes[2], traits[2])
    places = PLACES["sea" if group == "sea" else "land"]
    p, p2 = rng.sample(places, 2)
    p = given.get("place") or p
    while p2 == p:
        p2 = rng.choice(places)
    if not given.get("place"):
        fitting = [x for x in places if x != p2 and held("story", kind, x) == want_held]
        p = rng.choice(fitting or [p])
    obj = given.get("object") or f"{rng.choice(MATERIAL)} {rng.choice(OBJECTS)}"
    home = rng.choice(_HOMES["bird" if kind in BIRDS else group])
    second = rng.choice([s for s in SECOND if not s.endswith(obj.split()[-1])])
    machine = rng.choice(MACHINES)
    days = rng.sample(kinds.DAYS, 2)
    slots |= {"P": p, "P2": p2, "o": obj, "ao": a(obj), "Ao": a(obj).capitalize(), "o2": second, "ao2": a(second), "Ao2": a(second).capitalize(), "home": home, "town": given.get("town") or names.town(rng, want_held), "food": rng.choice(FOOD),
              "machine": machine, "Machine": machine.capitalize(), "day": days[0], "day2": days[1], "season": rng.choice(kinds.SEASONS), "walk": slots["walkA"], "Ahis3": slots["Ahis"], "group": group}
    return slots


def in_first_person(slots: dict) -> dict:
    """The same slots with A as the teller."""
    return slots | {"A": "I", "As": "my", "Ahe": "I", "Ahim": "me", "Ahis": "my", "Ahers": "mine", "Aself": "myself", "AHe": "I", "AHis": "My"}
