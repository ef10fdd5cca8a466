"""Things by kind. `KINDS` serves the list tasks (plural name of the kind -> its members);
the stories and the passages draw from the same lists, so that a word is seen in many uses."""

def _w(text: str) -> list[str]:
    """Comma-separated words, each once; line ends do not matter."""
    return list(dict.fromkeys(w for w in (" ".join(p.split()) for p in text.split(",")) if w))

WILD = _w("""fox, wolf, bear, deer, hare, badger, otter, beaver, squirrel, hedgehog, lynx, moose, boar, weasel, mole,
lion, tiger, leopard, cheetah, elephant, giraffe, zebra, rhino, hippo, monkey, gorilla, panda, koala, kangaroo, camel,
crocodile, lizard, turtle, tortoise, snake, frog, toad, newt, bat, rat, mouse, raccoon, skunk, wombat, jackal, hyena,
antelope, gazelle, bison, buffalo, yak, llama, sloth, armadillo, porcupine, chipmunk, ferret, meerkat, mongoose, jaguar""")
FARM = _w("cow, horse, sheep, goat, pig, donkey, hen, rooster, duck, goose, turkey, mule, ox, pony, lamb, calf, foal, kid goat, piglet, bull")
PETS = _w("cat, dog, rabbit, hamster, goldfish, parrot, canary, guinea pig, kitten, puppy, gerbil, budgie, pony, turtle")
BIRDS = _w("""owl, crow, raven, robin, sparrow, swallow, eagle, hawk, falcon, heron, stork, crane, swan, pelican, penguin, puffin,
gull, pigeon, dove, magpie, jay, wren, finch, thrush, blackbird, cuckoo, kingfisher, peacock, flamingo, ostrich, toucan, woodpecker,
lark, starling, parrot, canary, nightingale, vulture, kite, quail""")
SEA = _w("""whale, dolphin, seal, shark, octopus, squid, crab, lobster, starfish, jellyfish, seahorse, walrus, turtle, shrimp, eel, ray,
swordfish, oyster, clam, mussel, sea lion, urchin, snail, penguin""")
FISH = _w("salmon, trout, cod, herring, tuna, carp, pike, perch, sardine, mackerel, eel, catfish, haddock, bass, plaice, sole, anchovy, goldfish")
INSECTS = _w("ant, bee, wasp, beetle, butterfly, moth, cricket, grasshopper, ladybird, dragonfly, fly, gnat, mosquito, firefly, locust, termite, earwig, flea, hornet, mantis")
TREES = _w("oak, elm, ash, birch, beech, pine, fir, maple, willow, poplar, cedar, chestnut, walnut, hazel, alder, larch, yew, holly, lime, spruce, cypress, palm, apple tree, cherry tree, rowan, sycamore")
FLOWERS = _w("rose, tulip, daisy, lily, violet, poppy, daffodil, sunflower, iris, pansy, snowdrop, bluebell, primrose, orchid, marigold, lavender, peony, crocus, buttercup, foxglove, dandelion, carnation, geranium, lilac, jasmine")
FRUITS = _w("apple, pear, plum, cherry, peach, apricot, grape, orange, lemon, lime, banana, mango, melon, fig, date, strawberry, raspberry, blackberry, blueberry, currant, gooseberry, pineapple, coconut, kiwi, pomegranate, quince, nectarine, papaya, tangerine, cranberry")
VEGETABLES = _w("carrot, potato, onion, cabbage, leek, pea, bean, turnip, radish, beet, spinach, lettuce, cucumber, tomato, pumpkin, pepper, celery, parsnip, garlic, cauliflower, broccoli, asparagus, marrow, kale, fennel, artichoke, sprout, aubergine")
COLOURS = _w("red, blue, green, yellow, white, black, brown, grey, purple, orange, pink, silver, gold, violet, turquoise, scarlet, crimson, cream, amber, copper, ivory, lilac, teal, navy")
METALS = _w("iron, copper, gold, silver, tin, lead, zinc, nickel, steel, brass, bronze, aluminium, platinum, titanium")
GEMS = _w("ruby, emerald, diamond, sapphire, pearl, opal, topaz, garnet, amethyst, jade, amber, turquoise, agate, onyx")
TOOLS = _w("hammer, saw, axe, drill, pliers, spade, rake, chisel, wrench, screwdriver, file, plane, pickaxe, shovel, ladder, crowbar, vice, anvil, trowel, scissors, sickle, hoe, level, clamp, mallet")
INSTRUMENTS = _w("violin, flute, drum, trumpet, piano, guitar, harp, cello, horn, clarinet, oboe, trombone, tuba, banjo, lute, organ, accordion, harmonica, fiddle, bassoon, cymbals, tambourine, bagpipes, recorder, xylophone, saxophone")
CLOTHES = _w("coat, hat, scarf, glove, shoe, boot, shirt, dress, skirt, sock, belt, jacket, cap, cloak, apron, sweater, trousers, mitten, vest, sandal, shawl, slipper, blouse, jumper, waistcoat, nightgown, raincoat")
FURNITURE = _w("table, chair, bed, desk, shelf, stool, bench, sofa, cupboard, wardrobe, armchair, bookcase, chest, cradle, dresser, couch, cabinet, footstool, sideboard, bunk bed")
VEHICLES = _w("car, bus, train, boat, ship, bicycle, tram, truck, van, cart, sledge, canoe, ferry, balloon, plane, tractor, wagon, scooter, motorcycle, barge, raft, carriage, helicopter, rocket, taxi, submarine, yacht")
JOBS = _w("""baker, farmer, teacher, doctor, nurse, tailor, carpenter, smith, miller, sailor, fisher, gardener, painter, potter, weaver, shepherd,
clockmaker, librarian, cook, postman, pilot, driver, builder, plumber, singer, dancer, actor, writer, poet, judge, lawyer, engineer, mason, cobbler,
butcher, brewer, hunter, miner, soldier, captain, guard, barber, beekeeper, glassblower, locksmith, mechanic, florist, dentist, vet, astronomer,
photographer, sculptor, violinist, juggler, magician, printer, bookbinder, lighthouse keeper, ferryman, watchmaker, saddler, candlemaker, ropemaker,
cheesemaker, jeweller, scientist, explorer, detective, firefighter, waiter, tutor, merchant, innkeeper, blacksmith, chimney sweep, toymaker, mapmaker""")
FOODS = _w("bread, cheese, soup, rice, pasta, stew, pie, porridge, omelette, pancake, salad, sandwich, sausage, dumpling, butter, honey, jam, noodle, roast, pudding, toast, egg, curry, pizza, mushroom, chowder, muffin, waffle, burger, biscuit")
DRINKS = _w("water, milk, tea, coffee, juice, lemonade, cider, cocoa, broth, soda, ginger beer, apple juice, hot chocolate, orange juice, mint tea, wine, beer, buttermilk")
DESSERTS = _w("cake, pie, ice cream, pudding, tart, jelly, trifle, brownie, cookie, custard, waffle, doughnut, meringue, cheesecake, crumble, sorbet, eclair, strudel")
SPICES = _w("salt, pepper, cinnamon, ginger, nutmeg, clove, cumin, saffron, thyme, basil, mint, sage, rosemary, parsley, dill, oregano, paprika, vanilla, turmeric, mustard, chili, cardamom, bay leaf")
SPORTS = _w("football, tennis, rowing, running, swimming, hockey, cricket, golf, boxing, skating, skiing, cycling, rugby, archery, fencing, climbing, sailing, judo, wrestling, surfing, basketball, volleyball, badminton, baseball, handball, diving")
GAMES = _w("chess, hide and seek, marbles, tag, dominoes, cards, hopscotch, skittles, darts, draughts, charades, dice, bingo, leapfrog, snap, solitaire, ludo, noughts and crosses")
TOYS = _w("doll, kite, ball, top, marble, teddy bear, yo-yo, puppet, rocking horse, toy train, whistle, hoop, building block, jigsaw, drum, rattle, skipping rope, toy boat, spinning top, toy soldier")
SHAPES = _w("circle, square, triangle, rectangle, oval, star, cube, sphere, cone, pyramid, hexagon, pentagon, cylinder, diamond, octagon, crescent, spiral")
WEATHERS = _w("rain, snow, fog, hail, sleet, thunder, lightning, wind, sunshine, frost, mist, drizzle, storm, ice, breeze, blizzard, rainbow, heat")
FEELINGS = _w("joy, anger, fear, sadness, pride, envy, hope, love, shame, surprise, guilt, boredom, relief, grief, delight, worry, calm, loneliness, curiosity, gratitude, courage, excitement, disgust, longing")
ROOMS = _w("kitchen, bedroom, bathroom, attic, cellar, hall, pantry, library, study, nursery, dining room, living room, laundry, porch, workshop, garage, office, parlour, playroom, conservatory")
BUILDINGS = _w("house, barn, castle, church, school, library, mill, tower, station, inn, shop, hospital, museum, theatre, lighthouse, palace, bakery, factory, cottage, temple, bank, hotel, market hall, stable, warehouse, windmill, prison, observatory")
BODY = _w("arm, leg, head, hand, foot, eye, ear, nose, mouth, knee, elbow, shoulder, finger, toe, neck, back, chin, cheek, tooth, tongue, heart, wrist, ankle, thumb, lip, hip, stomach, forehead")
KITCHENWARE = _w("pot, pan, spoon, fork, knife, plate, bowl, cup, kettle, ladle, whisk, oven, jug, mug, sieve, grater, rolling pin, saucer, teapot, colander, frying pan, chopping board, toaster, glass, tin opener")
SCHOOL = _w("pencil, pen, ruler, book, chalk, eraser, notebook, desk, map, globe, paper, crayon, ink, satchel, blackboard, glue, scissors, paintbrush, compass, calculator, folder, stapler, sharpener, atlas")
FAMILY = _w("mother, father, sister, brother, aunt, uncle, cousin, grandmother, grandfather, niece, nephew, son, daughter, wife, husband, twin")
LANDSCAPE = _w("mountain, river, lake, forest, valley, hill, island, desert, beach, cave, cliff, meadow, swamp, glacier, volcano, canyon, waterfall, plain, marsh, field, bay, pond, stream, moor, dune")
SKY = _w("sun, moon, star, cloud, comet, planet, rainbow, meteor, galaxy, satellite, aurora, eclipse")
MATERIALS = _w("wood, glass, stone, paper, wool, cotton, silk, leather, clay, brick, plastic, rubber, linen, straw, wax, cork, marble, velvet, concrete, felt, canvas, bamboo")
MONSTERS = _w("dragon, giant, troll, goblin, ogre, fairy, mermaid, unicorn, phoenix, griffin, dwarf, elf, witch, wizard, ghost, gnome, werewolf, vampire, sea serpent, genie, imp, sprite")
SHOPS = _w("bakery, butcher, bookshop, toy shop, florist, grocer, pharmacy, shoe shop, hat shop, fishmonger, jeweller, sweet shop, hardware store, tailor, barber, candle shop, cheese shop, flower shop")
MONTHS = _w("January, February, March, April, May, June, July, August, September, October, November, December")
DAYS = _w("Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday")
SEASONS = _w("spring, summer, autumn, winter")
ADJECTIVES = _w("""brave, clever, kind, shy, proud, gentle, curious, stubborn, cheerful, patient, lazy, honest, careful, clumsy, bold, quiet, loud, lonely,
grumpy, loyal, greedy, generous, nervous, polite, playful, wise, foolish, restless, dreamy, jealous, humble, fierce, sly, timid, friendly, sleepy, hungry,
forgetful, hopeful, tidy, messy, thoughtful, merry, solemn, impatient, daring, modest, witty, sensible, moody""")
VERBS = _w("""run, walk, jump, swim, climb, sing, dance, read, write, draw, paint, cook, bake, sew, dig, plant, build, carry, push, pull, throw, catch,
whistle, laugh, cry, sleep, dream, listen, speak, whisper, shout, look, search, find, hide, wait, wander, travel, sail, fly, ride, drive, climb, crawl, knock,
open, close, break, mend, wash, sweep, polish, count, measure, learn, teach, help, share, borrow, lend, buy, sell, trade, win, lose, chase, follow, lead, rest""")

ANIMALS = list(dict.fromkeys(WILD + FARM + PETS + BIRDS + SEA + INSECTS))

#: plural name of a kind -> members; what somebody may ask a list of
KINDS: dict[str, list[str]] = {
    "animals": ANIMALS, "wild animals": WILD, "farm animals": FARM, "pets": PETS, "birds": BIRDS, "sea animals": SEA, "fish": FISH,
    "insects": INSECTS, "trees": TREES, "flowers": FLOWERS, "fruits": FRUITS, "vegetables": VEGETABLES, "colours": COLOURS,
    "colors": COLOURS, "metals": METALS, "gems": GEMS, "tools": TOOLS, "musical instruments": INSTRUMENTS, "instruments": INSTRUMENTS,
    "clothes": CLOTHES, "pieces of clothing": CLOTHES, "pieces of furniture": FURNITURE, "vehicles": VEHICLES, "jobs": JOBS,
    "professions": JOBS, "foods": FOODS, "drinks": DRINKS, "desserts": DESSERTS, "spices": SPICES, "herbs and spices": SPICES,
    "sports": SPORTS, "games": GAMES, "toys": TOYS, "shapes": SHAPES, "kinds of weather": WEATHERS, "feelings": FEELINGS,
    "emotions": FEELINGS, "rooms": ROOMS, "rooms of a house": ROOMS, "buildings": BUILDINGS, "parts of the body": BODY, "body parts": BODY,
    "kitchen things": KITCHENWARE, "things in a kitchen": KITCHENWARE, "school things": SCHOOL, "things in a classroom": SCHOOL,
    "members of a family": FAMILY, "landforms": LANDSCAPE, "things in the sky": SKY, "materials": MATERIALS,
    "creatures from fairy tales": MONSTERS, "mythical creatures": MONSTERS, "shops": SHOPS, "months": MONTHS, "days of the week": DAYS,
    "seasons": SEASONS, "adjectives": ADJECTIVES, "verbs": VERBS,
}
