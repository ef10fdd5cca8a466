"""Short poems about anything, jokes, opposites and plurals: small things that people ask for."""
import random

from grammar import a, capitalise, fill, pick, plural
from sample import Sample, loosely, turns
from split import held
from words import kinds, names

# Four lines that rhyme; {k} is the subject ("fox"), {ks} its plural, {ak} with its article.
QUATRAINS = [
    "[The moon was high|The lamps were low|The stars were out], the [night|wind|street] was still,\n{ak} [came walking|went dancing|sat dreaming] over the hill.\nIt [hummed a tune|looked around|sang a song], so soft and so slow,\nand where it was going I [do not|never will] know.",
    "I once [met|saw|knew] {ak} by the edge of the sea,\nthat [lifted its head and looked up at me|nodded its head and was friendly to me].\n\"[Good morning|Hello there]!\" I said. \"[It is lovely|How lovely] today!\"\nIt gave me a [smile|wink] and it went on its way.",
    "O {k}, [little|lovely|wonderful] {k}, [what do you see|where will you be],\nwhen [evening|winter|the darkness] comes down on the [roof and the tree|house and the tree]?\n\"I [see the first star|look at the sky],\" said the {k}, \"[in the blue|and the dew],\nand I think, now and then, of [a friend such as you|somebody like you].\"",
    "[In spring|In summer|In autumn|In winter], when [mornings are cold and clear|the end of the day is near|nobody else is here],\nthe {k} [is the first|is the last] of us all to appear.\nIt [asks for|wants] no [money|honey], it asks for no [bread|bed],\nonly [the sky and the clouds|a song and the sun] overhead.",
    "There are [some|those] who love silver and [some|those] who love gold,\nand [some|those] who love stories that [cannot be told|never grow old].\nBut I love the {k}, [in the sun and the rain|again and again],\nand I [always will love it|shall love it tomorrow], as true as [my name|a train|the rain].",
    "The {k} [has|had] a secret it [never will|never would|could never] tell,\nit [keeps|kept] it [down deep|all safe] in the [dark of a well|heart of a shell].\nI asked it [on Sunday|at midnight], I asked it [at noon|in June],\nit only looked up and it [pointed at|whistled to|smiled at] the moon.",
    "[Soft|Slow] is the river and [deep|dark] is the wood,\nand the {k} goes to sleep as all good {ks} should.\nThe wind turns the leaves, and the leaves turn [to gold|all cold],\nand the dreams that it dreams are a thousand years old.",
    "[Hurrah|Hooray] for the {k}, [so bold|so brave] and so [small|tall],\nit [jumped|looked|climbed] over the garden wall!\nIt [fell|stepped] in a bucket, it [ran into|sat on] a [rake|cake],\nand everyone laughed till their sides [would ache|began to ache].",
    "If I were {ak}, I would [sail|fly] to the moon,\nI would leave [in the evening|on Friday] and come back [at noon|in June].\nI would bring you [a stone|a spark|some dust] and [a little bit of|a pocket of] light,\nand you would not be lonely all through the night.",
    "Oh, where is the {k} that was [here|mine] yesterday?\nIt [has gone|went off] with [the clouds|the wind] and [has wandered|it wandered] away.\nI left it [a light|a lamp] in the window for home,\nfor nobody ever should [travel|wander] alone.",
    "[One|Two|Three|Four] {ksx} went out for a [walk in|stroll in] the town,\nthe [first|smallest] of them [wore|had] a [hat that was brown|shiny red crown].\nThey [looked at|talked of] the weather, they talked of the [price|mice],\nand all of them said that [the morning was|the morning was very] nice.",
    "A [letter|song|word] for the {k}, and I write it in [blue|rhyme],\n[for I have|because I have] nothing [but paper|but kindness] and time.\nThe [rain on the window|clock on the mantel], it [ticks|taps] and it [sings|rings],\nand tells me of [distant and wonderful|faraway, beautiful] things.",
]
POEM = ["Write a poem about {x}.", "Write a short poem about {x}.", "A poem about {x}, please.", "[Can|Could] you write a poem about {x}?", "Make a poem about {x}.", "Give me a poem about {x}.", "Write me a little poem about {x}.", "Tell me a poem about {x}.", "Compose a poem about {x}.", "Poem about {x}", "I would like a poem about {x}.", "Write some verses about {x}.", "Write a rhyme about {x}."]
SUBJECTS = kinds.ANIMALS + kinds.TOYS[:8] + kinds.SKY + kinds.FURNITURE[:8] + kinds.FRUITS[:12] + kinds.LANDSCAPE + kinds.JOBS[:40] + kinds.MONSTERS + kinds.FLOWERS[:12] + ["robot", "train", "boat", "clock", "river", "snowman", "teapot", "key", "lantern"]


def poem(rng, want_held):
    subject = rng.choice(SUBJECTS)
    count = rng.choice((1, 2, 2, 3))
    verses = tuple(rng.sample(range(len(QUATRAINS)), count))
    slots = {"k": subject, "ak": a(subject), "ks": plural(subject), "ksx": plural(subject)}
    lines = [capitalise("\n" + fill(rng, QUATRAINS[v], slots).replace("One " + slots["ks"], "Two " + slots["ks"]))[1:] for v in verses]
    text = "\n\n".join("\n".join(line[0].upper() + line[1:] for line in verse.split("\n")) for verse in lines)
    said = rng.choice((a(subject), a(subject), "the " + subject, slots["ks"]))
    prompt = fill(rng, pick(rng, POEM), {"x": said}) if rng.random() < 0.93 else rng.choice(("Write a poem.", "Tell me a poem.", "A poem, please."))
    return Sample("poems", turns((loosely(rng, prompt), text)), check="free")


JOKES = ["Why did the {a} [take a ladder to|climb up in] school? Because it wanted to be in the high school.", "What did the {a} say to the {b}? Nothing. {aB}s cannot talk.".replace("{aB}", "{A}"), "Why does the {a} never [play cards|play chess]? Because somebody always calls it a cheater, and it is not even a cheetah.",
         "A {a} walks into a bakery. \"[One loaf|One cake], please.\" \"That makes [three|five] coins,\" says the baker. \"We do not get many {as} here.\" \"At these prices,\" says the {a}, \"I am not surprised.\"", "What is [grey|green|brown] and goes up and down? A {a} in a lift.",
         "Why did the {a} bring a pencil to bed? To draw the curtains.", "What time is it when a {a} sits on your fence? Time to get a new fence.", "Doctor, doctor, I feel like a {a}! \"How long has this been going on?\" \"Since I was a very small {a}.\"", "How do you stop a {a} from charging? Take away its purse.",
         "Why did the {a} cross the road? The {b} had the day off.", "What do you call a {a} in a raincoat? Dry.", "Two {as} sit on a bench. \"Is this bench taken?\" asks a third. \"No,\" they say, \"it is still here.\"", "My {a} can tell the time. It says it is always lunch."]


def joke(rng, want_held):
    x, y = rng.sample([k for k in kinds.WILD + kinds.FARM[:10] if " " not in k], 2)
    text = fill(rng, pick(rng, JOKES), {"a": x, "b": y, "as": plural(x), "A": x.capitalize()})
    text = text.replace(f" a {x}", " " + a(x)).replace(f"A {x}", a(x).capitalize())
    return Sample("jokes", turns((loosely(rng, rng.choice(("Tell me a joke.", "A joke, please.", "Do you know a joke?", "Make me laugh.", "Tell a joke", "Say something funny.", "Tell me something funny.", "Can you tell me a joke?", "Another joke, please."))), text)), check="free")


OPPOSITES = [p.split("/") for p in """hot/cold big/small up/down left/right day/night black/white good/bad old/young fast/slow high/low long/short hard/soft wet/dry full/empty open/closed rich/poor strong/weak light/dark loud/quiet happy/sad early/late
near/far thick/thin wide/narrow deep/shallow clean/dirty heavy/light begin/end win/lose buy/sell come/go give/take love/hate push/pull laugh/cry question/answer yes/no true/false brave/afraid sweet/sour smooth/rough sharp/blunt tidy/messy kind/cruel
first/last inside/outside above/below before/after always/never friend/enemy summer/winter north/south east/west king/queen brother/sister mother/father boy/girl man/woman sun/moon morning/evening asleep/awake alive/dead simple/difficult cheap/expensive
top/bottom front/back entrance/exit arrive/leave remember/forget lost/found stop/start sit/stand war/peace beautiful/ugly polite/rude clever/foolish safe/dangerous same/different many/few more/less""".split()]
_ONE_WAY = {"light": "dark"}


def opposite(rng, want_held):
    one, other = rng.choice(OPPOSITES)
    if rng.random() < 0.5 and other != "light":
        one, other = other, one
    other = _ONE_WAY.get(one, other)
    return Sample("opposites", turns((loosely(rng, fill(rng, pick(rng, ["What is the opposite of {w}?", "What is the opposite of '{w}'?", "Opposite of {w}?", "Tell me the opposite of {w}.", "What is the contrary of {w}?", "Give me the opposite of {w}."]), {"w": one})), other)), check="free")


def plurals(rng, want_held):
    while True:
        noun = rng.choice(kinds.ANIMALS + kinds.TOOLS + kinds.FRUITS + kinds.KITCHENWARE + kinds.BUILDINGS + kinds.FURNITURE + ["child", "man", "woman", "foot", "tooth", "leaf"])
        if held("plural", noun) == want_held and " " not in noun and noun not in ("pliers", "scissors"):
            break
    return Sample("plurals", turns((loosely(rng, fill(rng, pick(rng, ["What is the plural of {w}?", "What is the plural of '{w}'?", "Plural of {w}?", "One {w}, two ...?", "What do you call more than one {w}?"]), {"w": noun})), plural(noun))))


TASKS = {"poems": poem, "jokes": joke, "opposites": opposite, "plurals": plurals}
