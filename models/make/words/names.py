"""Names. Real ones for warmth; invented ones by the thousand, so that a name is something to copy, not to remember."""
import random

from split import held

GIRLS = """Ada Agnes Alice Alma Amelia Amy Anna Anya Astrid Aurora Bea Bella Beth Bianca Birgit Bridget Carla Cara Celia Clara Cora Daisy Dana
Daphne Delia Della Dora Edith Elena Eliza Ella Ellen Elsa Emily Emma Erin Esme Esther Eva Faye Fiona Flora Freya Gemma Gina Grace Greta Gwen
Hana Hannah Harriet Hazel Heidi Helen Hilda Holly Ida Imogen Ines Ingrid Irene Iris Isla Ivy Jane Jasmine Jenny Joan Josie Judith Julia June
Karen Kate Katya Keira Kira Lara Laura Layla Lea Leila Lena Lily Linda Lola Lottie Lucia Lucy Luna Mabel Maeve Maja Mara Maria Martha Mary
Matilda Maya Megan Mia Mila Mina Mira Molly Mona Nadia Nancy Naomi Nell Nina Nora Nova Olga Olive Olivia Opal Orla Paula Pearl Penny Petra
Phoebe Pia Polly Priya Rachel Rhea Rita Rosa Rose Rosie Ruby Ruth Sadie Sally Sara Sarah Selma Signe Sofia Sonia Sophie Stella Susan Sylvia
Talia Tamar Tara Tess Thea Tilda Tina Una Ursula Vera Viola Wanda Willa Winnie Yara Yasmin Yuki Zadie Zara Zelda Zoe
Anaïs Begoña Bärbel Chloë Céline Désirée Esmé Gaëlle Hélène Inès Léa Lucía Maëlle Märta Mónica Noémie Renée Siân Sólrún Åsa Élodie Zoë""".split()
BOYS = """Aaron Abel Adam Aidan Alan Albert Alec Alfred Amir Amos Anders Andrew Anton Arlo Arthur Asa Axel Barnaby Basil Ben Bernard Boris Bruno
Caleb Carl Casper Cedric Chester Clive Colin Conrad Cyril Dan Daniel David Dennis Derek Dexter Dmitri Dylan Eddie Edgar Edmund Edward Eli
Elias Elliot Emil Eric Erik Ernest Ethan Evan Felix Fergus Finn Floyd Francis Frank Fred Gabriel George Gilbert Giles Gordon Gus Hal Hamish
Hank Hans Harold Harry Harvey Hector Henrik Henry Herman Hugh Hugo Ian Igor Isaac Ivan Ivor Jack Jacob Jake James Jared Jasper Jim Joe Joel
John Jonas Joseph Josh Jules Julian Kai Karim Karl Kenji Kofi Lars Lawrence Leo Leon Levi Lewis Liam Linus Lionel Louis Luca Lucas Luke
Magnus Malik Marco Mark Martin Marvin Matteo Max Michael Milan Miles Milo Mohan Morris Ned Neil Nico Nigel Noah Nolan Olaf Oliver Omar
Oscar Oskar Otis Otto Owen Pablo Paco Patrick Paul Pedro Percy Peter Phil Pierre Quentin Rafael Ralph Ravi Ray Reuben Rex Robert Robin
Roger Roland Ron Rory Ross Rowan Roy Rufus Rupert Sam Samuel Saul Sean Sid Silas Simon Stan Stefan Steven Sven Tariq Ted Theo Thomas Tim
Toby Tom Tony Tristan Ulf Victor Vince Viktor Walt Walter Ward Warren Wesley Will William Wilf Xavier Yusuf Zach Zane
Adrián André Björn Émile François Håkon Íñigo Jörg José Jürgen Loïc Mátyás Noël Óscar Raúl René Søren Tomás Åke Öyvind""".split()
SURNAMES = """Abbot Adler Ames Archer Ashby Atwood Bacon Bailey Baker Banks Barlow Barnes Bell Bennett Berg Bishop Black Blake Bloom Bolt Booth
Bowen Bright Brook Brown Burke Burton Carter Chan Clay Cole Cook Cooper Cross Dale Dalton Dean Dixon Drake Dunn Eaton Ellis Evans Farrow
Field Fisher Fleming Flint Ford Foster Fox Frost Garcia Gibson Glover Grant Gray Green Greer Hale Hall Hansen Hardy Harper Hart Hayes Heath
Hill Holm Holt Hood Hope Horne Howard Hughes Hunt Ibsen Jensen Jones Keane Kelly Kent Kim King Klein Knight Lamb Lane Larsen Lee Lewis Lind
Lloyd Long Lopez Lowe Marsh Martin Mason Meyer Mills Moore Moss Nash Nilsen Noble North Novak Oakes Olsen Page Park Patel Pearce Penn Perry
Pike Pope Porter Price Quinn Reed Reyes Rhodes Rice Roth Rowe Sato Shaw Shore Silva Singh Smith Snow Stark Steele Stone Strand Swan Tate Thorn
Todd Turner Vale Vance Vega Wade Walker Wall Ward Webb Weiss Wells West White Wilde Wolf Wood Wren Wright Yates York Young
Brontë Dubé Díaz García Gómez Jäger Krüger Lefèvre López Lévy Müller Núñez Peña Sjöberg Sørensen Åberg Ångström Öberg Østergård""".split()
TOWNS = """Alderby Ambleton Arden Ashford Avonlea Barrow Bayview Beckton Birchwood Blackwell Bramford Brightwater Broadfield Burnham Caldwell
Carrick Clearwater Cliffton Coldbrook Cranmore Dalby Deepwell Dunmore Eastham Elmstead Fairhaven Fallow Fenwick Foxley Glenmore Goldcrest
Grayport Greenhill Halden Harrowgate Hazelton Highmoor Hollin Ironbridge Kelby Kestrel Langdale Larkhill Linden Longmere Lowick Maplewood
Marston Millbrook Mossley Netherby Northwick Oakhurst Oldport Pinegrove Port Ellis Quarrymoor Redcliff Ridgeway Riverton Rookwood Saltmarsh
Sandwick Seaford Silverdale Southmere Stonebridge Summerfield Sunderby Thornbury Tidewater Torrin Underhill Valmont Wayford Westbrook
Whitby Wildmoor Willowdale Windham Winterbourne Woodvale Yarrow Zennor Oslo Paris Rome London Berlin Madrid Lisbon Vienna Dublin Prague
Lima Cairo Delhi Tokyo Boston Chicago Denver Seattle Toronto Sydney Bergen Hamburg Geneva Milan Athens Warsaw
Bogotá Cádiz Córdoba Göteborg Köln Kraków León Malmö Málaga Orléans Québec Tromsø Zürich Århus""".replace("Port Ellis", "Port_Ellis").split()
TOWNS = [t.replace("_", " ") for t in TOWNS]

_ONSET = "b bl br c ch cl cr d dr f fl fr g gl gr h j k kl kr l m n p ph pl pr qu r s sc sh sk sl sm sn sp st str sw t th tr tw v w wh y z".split()
_VOWEL = "a e i o u a e i o u a e i o ai ea ee oo ou ia ie io au oa y".split()
_CODA = ["", "", "", "", "l", "n", "r", "s", "m", "t", "d", "k", "nd", "st", "x", "lt", "rn", "ck", "p", "b"]


def invented(rng: random.Random, syllables: int) -> str:
    """A word nobody has read before, in lower case."""
    c = rng.choice
    return "".join(("" if i == 0 and rng.random() < 0.2 else c(_ONSET)) + c(_VOWEL) + (c(_CODA) if i == syllables - 1 or rng.random() < 0.3 else "") for i in range(syllables))


_ACCENTED = {"a": "áàâäåã", "e": "éèêë", "i": "íîï", "o": "óôöøõ", "u": "úùûü", "c": "çčć", "n": "ñ", "y": "ý", "s": "š", "z": "žź", "l": "ł"}


def accented(rng: random.Random, word: str) -> str:
    """The word with one of its letters under an accent, where one of them can have one."""
    spots = [i for i, letter in enumerate(word) if letter in _ACCENTED]
    if not spots:
        return word
    i = rng.choice(spots)
    return word[:i] + rng.choice(_ACCENTED[word[i]]) + word[i + 1:]


def spliced(rng: random.Random, words: list[str]) -> str:
    """The head of one word with the tail of another: new, and yet made of the pieces that words are made of."""
    while True:
        head, tail = rng.choice(words).lower(), rng.choice(words).lower()
        word = head[:rng.randint(1, len(head))] + tail[rng.randint(0, len(tail) - 1):]
        if 3 <= len(word) <= 11 and word.isalpha() and set(word) & set("aeiouy"):
            return word


_ALL = GIRLS + BOYS + SURNAMES + [t for t in TOWNS if " " not in t]


def _choose(rng: random.Random, pool: list[str], want_held: bool, salt: str) -> str:
    while True:
        name = rng.choice(pool)
        if held(salt, name) == want_held:
            return name


def _fresh(rng: random.Random, want_held: bool, salt: str, low: int, high: int) -> str:
    while True:
        name = spliced(rng, _ALL) if rng.random() < 0.6 else invented(rng, rng.randint(low, high))
        name = (accented(rng, name) if rng.random() < 0.1 else name).capitalize()
        if 3 <= len(name) <= 11 and held(salt, name) == want_held:
            return name


def person(rng: random.Random, want_held: bool = False, strange: float = 0.35) -> tuple[str, str]:
    """(first name, 'f' or 'm'). `strange` is the share of invented names."""
    sex = rng.choice("fm")
    if rng.random() < strange:
        return _fresh(rng, want_held, "name", 1, 3), sex
    return _choose(rng, GIRLS if sex == "f" else BOYS, want_held, "name"), sex


def surname(rng: random.Random, want_held: bool = False) -> str:
    return _fresh(rng, want_held, "surname", 2, 3) if rng.random() < 0.3 else _choose(rng, SURNAMES, want_held, "surname")


def town(rng: random.Random, want_held: bool = False) -> str:
    return _fresh(rng, want_held, "town", 2, 3) if rng.random() < 0.3 else _choose(rng, TOWNS, want_held, "town")


def people(rng: random.Random, n: int, want_held: bool = False, strange: float = 0.35) -> list[tuple[str, str]]:
    """n people with different names."""
    found: dict[str, str] = {}
    while len(found) < n:
        name, sex = person(rng, want_held, strange)
        found.setdefault(name, sex)
    return list(found.items())
