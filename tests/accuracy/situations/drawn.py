"""What the real runs of the tenth round and later are of: kinds, subjects, costs that a seed draws.

    python drawn.py              # the tenth round's runs that are held out, a line each
    python drawn.py --guiding    # those that guide the rules
    python drawn.py --eleventh   # a later round's, by its number in words

Whoever writes a run writes the fault and the model; he does not choose what they are of.
A kind is drawn as often as the rounds before had it among their real runs.
"""

import csv
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

HERE = Path(__file__).parent
BEFORE = ["index.csv", *(f"index{n}.csv" for n in (2, 3, 5, 6, 7, 8, 9))]
# The commit that main stood at when the draw was written: nobody chose it.
SEED = "552b921"
HELD, GUIDING = 44, 26
# What removing the fault should be worth, times as fast: sizes are set for it (assumed: 1.2 is
# the least that a proof takes, and above 5 few runs are in doubt).
COSTS = (1.5, 2.0, 3.0, 5.0)
NO_COST = {"none", "unknown"}
SUBJECTS = (
    "birdsong", "knitting patterns", "chess openings", "forest fires", "clouds", "mushrooms",
    "written formulas", "licence plates", "subtitles", "recipes", "contracts", "train delays",
    "unwanted mail", "gene expression", "diffraction patterns", "canopy heights", "news headlines",
    "river gauges", "wine ratings", "share prices", "taxi rides", "house prices", "fabric defects",
    "weld seams", "circuit layouts", "solar flares", "coins", "fish catches", "bee hives",
    "tree rings", "football passes", "running gaits", "eye movements", "lip reading", "typing",
    "sheet music", "drum loops", "guitar chords", "engine noise", "whale calls", "bicycle counts",
    "parking spaces", "airport queues", "power lines", "heat pumps", "milk yields", "egg shells",
    "coffee beans", "tea leaves", "rice paddies", "vineyards", "glaciers", "dunes", "avalanches",
    "lightning", "hail", "aurora", "asteroids", "pulsars", "neutrino hits", "muon tracks",
    "plasma shots", "alloys", "glass cracks", "paint colours", "perfume notes", "drug doses",
    "blood smears", "retinas", "teeth", "knee scans", "skin moles", "cough sounds", "allergies",
    "library loans", "museum labels", "old maps", "stamps", "crosswords", "sudoku grids",
    "bridge hands", "dice games", "map routes", "crane loads", "lift calls", "door locks",
    "spare parts", "parcel sizes", "shelf photos", "shopping baskets", "coupon use", "tax forms",
    "loan defaults", "insurance claims", "court rulings", "speeches", "poems", "proverbs",
)  # fmt: skip


MORE_SUBJECTS = (
    "bus stops", "ski lifts", "bakery orders", "laundry loads", "seed lots", "hop cones",
    "cheese rinds", "marble slabs", "tile patterns", "lace", "carpets", "violins", "bells",
    "kites", "sails", "anchors", "lighthouses", "locks of canals", "wells", "springs",
)  # fmt: skip

SUBJECTS_OF_THE_TWELFTH = (
    "owl pellets", "beach sand", "snowflakes", "feathers", "leaf veins", "acorns", "moss", "pollen",
    "spider webs", "ant trails", "frog calls", "cricket songs", "horse gaits", "dog coats",
    "pigeons",
    "herring shoals", "coral", "oysters", "seaweed", "tide pools", "icebergs", "fog", "rainbows",
    "rain gauges", "wind turbines", "solar panels", "gas meters", "water pipes", "sewers",
    "tunnels",
    "bridges", "elevators", "forklifts", "pallets", "cranes", "tugboats", "buoys", "submarines",
    "gliders", "balloons", "rockets", "satellites", "craters", "comets", "meteors", "nebulae",
    "quasars", "magnets", "batteries", "resistors", "antennas", "radar echoes", "sonar pings",
    "clock ticks", "organ pipes", "accordions", "harps", "bagpipes", "choirs", "lullabies",
    "limericks", "riddles", "fables", "diaries", "postcards", "telegrams", "menus", "prescriptions",
    "passports", "coats of arms", "tartans", "embroidery", "buttons", "zips", "shoes", "hats",
    "umbrellas", "spectacles", "keys", "padlocks", "candles", "lamps", "kettles", "spoons",
    "plates",
    "teapots", "jams", "noodles", "dumplings", "kimchi jars",
)  # fmt: skip


SUBJECTS_OF_THE_THIRTEENTH = (
    "snails", "slugs", "beetles", "butterflies", "moths", "dragonflies", "ladybirds", "fireflies",
    "wasps", "termites", "lizards", "geckos", "turtles", "newts", "toads", "hedgehogs", "badgers",
    "otters", "beavers", "bats", "storks", "herons", "swallows", "sparrows", "magpies", "pheasants",
    "trout", "salmon", "eels", "squid", "starfish", "sponges", "barnacles", "lichens", "ferns",
    "thistles", "orchids", "tulips", "roses", "cacti", "pine cones", "chestnuts", "walnuts",
    "hazelnuts", "olives", "figs", "lemons", "melons", "pumpkins", "radishes", "garlic", "onions",
    "peppers", "ginseng", "barley", "millet", "sesame", "honey", "vinegar", "soy sauce", "tofu",
    "rice cakes", "sausages", "pretzels", "waffles", "toffee", "marbles", "dolls", "puppets",
    "masks", "fans", "lanterns", "drums", "gongs", "flutes", "bassoons", "zithers", "whistles",
    "sirens", "foghorns", "doorbells", "elevators of grain", "windmills", "watermills", "looms",
    "spindles", "anvils", "chisels", "saws", "ladders", "ropes", "knots", "nets", "baskets",
    "barrels", "bottles", "corks", "jars", "inkwells", "quills",
)  # fmt: skip

SUBJECTS_OF_THE_FIFTEENTH = (
    "camels", "llamas", "goats", "geese", "quails", "parrots", "penguins", "seals", "dolphins",
    "octopuses", "crabs", "shrimps", "mussels", "jellyfish", "worms", "mites", "locusts", "cicadas",
    "mosquitoes", "bears", "wolves", "foxes", "hares", "squirrels", "mice", "monkeys", "pandas",
    "tigers", "elephants", "giraffes", "bamboo", "birches", "oaks", "willows", "cedars", "palms",
    "reeds", "clover", "dandelions", "ivy", "pears", "plums", "cherries", "grapes", "oranges",
    "bananas", "pineapples", "coconuts", "almonds", "peanuts", "beans", "lentils", "potatoes",
    "carrots", "cabbages", "spinach", "leeks", "mustard", "cinnamon", "saffron", "salt", "sugar",
    "butter", "yoghurt", "bread", "pancakes", "soups", "sandwiches", "ice cream", "chocolate",
    "paper", "ink", "chalk", "wax", "soap", "glue", "string", "wool", "silk", "cotton", "leather",
    "clay", "bricks", "cement", "gravel", "slate", "copper", "tin", "silver", "gold",
)  # fmt: skip

SUBJECTS_OF_THE_SEVENTEENTH = (
    "needles", "thimbles", "scissors", "hammers", "screws", "nails", "hinges",
    "springs of clocks", "pulleys", "gears", "pumps", "valves", "boilers", "chimneys", "stoves",
    "ovens", "mirrors", "windows of houses", "doors", "roofs", "gutters", "fences", "gates",
    "benches", "fountains", "statues", "mosaics", "murals", "posters", "stickers", "banners",
    "flags", "medals", "trophies", "ribbons", "bracelets", "earrings", "necklaces", "crowns",
    "belts", "gloves", "scarves", "mittens", "socks", "pyjamas", "aprons", "coats", "raincoats",
    "helmets", "backpacks", "suitcases", "tents", "hammocks", "sledges", "skates", "snowboards",
    "surfboards", "canoes", "rafts", "ferries", "trams", "metros", "lorries", "tractors",
    "ploughs", "harvesters", "sieves", "scales", "thermometers", "barometers", "compasses",
    "sextants", "telescopes", "microscopes", "prisms", "lenses", "lasers", "sundials",
    "calendars", "almanacs", "atlases", "globes", "dictionaries", "grammars", "alphabets",
    "ciphers", "puzzles", "jigsaws", "dominoes", "draughts", "billiards", "darts", "archery",
    "fencing", "judo", "rowing", "sailing", "curling", "cricket scores", "tennis serves",
    "golf swings", "marathons", "relays", "dives", "somersaults",
)  # fmt: skip

SUBJECTS_OF_THE_NINETEENTH = (
    "pickles", "jam jars", "lobster moults", "anemones", "sea cucumbers", "manta rays",
    "walrus herds", "polar bears", "arctic foxes", "reindeer", "yaks", "alpaca wool", "sheepdogs",
    "pigsties", "hen houses", "ducklings", "swans", "kingfishers", "woodpeckers", "nightingales",
    "larks", "cuckoos", "peacocks", "hummingbirds", "shrews", "dormice", "weasels", "lynxes",
    "jackals", "hyenas", "lions' roars", "zebra stripes", "antelopes", "buffalo herds", "rhinos",
    "hippos", "crocodiles", "tortoises", "chameleons", "salamanders", "grasshoppers",
    "spiders' webs", "scorpions", "earthworms", "leeches", "hazel nuts", "dates", "mangoes",
    "papayas", "cranberries", "turnips",
)  # fmt: skip

SUBJECTS_OF_THE_TWENTIETH = (
    "violas", "cellos", "oboes", "trombones", "tubas", "xylophones", "marimbas", "timpani",
    "banjos", "mandolins", "castanets", "tambourines", "bongos", "carillons", "waltzes", "tangos",
    "polkas", "minuets", "sonnets", "haiku", "anagrams", "palindromes", "tongue twisters",
    "ballads", "operas", "sagas", "chronicles", "semaphores", "beacons", "rudders", "masts", "oars",
    "rigging", "hulls", "keels", "docks", "piers", "weirs", "aqueducts", "viaducts", "arches",
    "domes", "spires", "turrets", "moats", "drawbridges", "dungeons", "cloisters", "altars",
    "frescoes", "tapestries", "rugs", "quilts", "doilies", "bobbins", "shuttles",
)  # fmt: skip
SUBJECTS_OF_THE_TWENTY_FIRST = (
    "geysers", "fjords", "lagoons", "canyons", "volcanoes", "waterfalls", "oases", "moraines",
    "whirlpools", "eclipses", "sunspots", "hourglasses", "pendulums", "metronomes", "anemometers",
    "seismographs", "periscopes", "kaleidoscopes", "beeswax", "hearths", "bellows", "forges",
    "horseshoes", "stirrups", "saddles", "carriages", "sleighs", "tricycles", "unicycles",
    "skateboards", "hang gliders", "parachutes", "zeppelins", "hot-air balloons", "sandcastles",
    "snowmen", "scarecrows", "terraces", "balconies", "staircases", "cellars", "attics",
    "pantries", "kilns", "quarries", "gravel pits", "sawdust", "plaster", "varnish", "resin",
    "amber", "jade", "opals", "garnets", "topazes",
)  # fmt: skip
SUBJECTS_OF_THE_TWENTY_SECOND = (
    "meadows", "hedges", "orchards", "greenhouses", "beehives of clay", "haystacks", "barns",
    "silos", "troughs", "buckets", "wheelbarrows", "rakes", "sickles", "scythes", "millstones",
    "grindstones", "bathtubs", "taps", "showers", "sponges of rubber", "combs", "razors", "wigs",
    "bonnets", "turbans", "sashes", "sandals", "slippers", "clogs", "stilts", "swings", "seesaws",
    "carousels", "slides", "trampolines", "hoops", "yo-yos", "spinning tops", "rattles",
    "music boxes", "player pianos", "gramophones", "jukeboxes", "typewriters", "abacuses",
    "slide rules", "blotters", "envelopes", "parchments", "scrolls", "bookmarks", "easels",
    "palettes", "turnstiles", "escalators", "footbridges",
)  # fmt: skip

SUBJECTS_OF_THE_TWENTY_THIRD = (
    "ropewalks", "capstans", "portholes", "figureheads", "astrolabes", "weathercocks",
    "skylights", "dormers", "shutters", "awnings", "keyholes", "letterboxes", "doormats",
    "umbrella stands", "monocles", "paperweights", "bookends", "chandeliers", "candlesticks",
    "lampshades", "matchboxes", "snuffboxes", "samovars", "pincushions", "brooches", "cufflinks",
    "suspenders", "earmuffs", "cradles", "tin soldiers", "dollhouses", "boomerangs", "igloos",
    "tepees", "corkscrews", "funnels", "ladles", "colanders", "mortars", "pestles", "whisks",
    "graters", "trellises", "pergolas", "gargoyles", "belfries", "parasols", "kimonos",
    "epaulettes", "medallions", "cameos", "lockets", "tiaras", "trivets", "tureens", "decanters",
    "goblets",
)  # fmt: skip

SUBJECTS_OF_THE_TWENTY_FOURTH = (
    "bagels", "birdcages", "braziers", "broomsticks", "cartwheels", "catapults", "crutches",
    "cupboards", "cymbals", "davits", "dovecotes", "fezzes", "fishhooks", "flagstones", "gondolas",
    "hairpins", "harpoons", "javelins", "jugs", "lecterns", "lutes", "mailbags", "moccasins",
    "parapets", "pennants", "pews", "pitchforks", "ponchos", "rafters", "rickshaws", "sarongs",
    "scabbards", "thermoses", "toboggans", "tweezers", "urns", "vests", "wigwams", "yokes", "abaci",
    "bassinets", "cauldrons", "chopsticks", "dustpans", "eyelets", "flasks", "galoshes",
    "hatstands", "jackboots", "kazoos", "lorgnettes", "mousetraps", "napkins", "ottomans",
    "ramparts", "spatulas", "ukuleles", "veils", "waistcoats", "sporrans", "cummerbunds",
    "bollards", "gazebos", "verandas",
)  # fmt: skip

SUBJECTS_OF_THE_TWENTY_FIFTH = (
    "axles", "canteens", "dowels", "earplugs", "ferrules", "girders", "hatchets", "icepicks",
    "jerseys", "kerbs", "lozenges", "manholes", "nozzles", "oilcans", "quoits", "ratchets",
    "sprockets", "tassels", "visors", "wallets", "armchairs", "bunk beds", "crowbars", "dartboards",
    "etchings", "flints", "garlands", "hubcaps", "kennels", "ledgers", "mallets", "nightgowns",
    "pinwheels", "ringbinders", "sundresses", "tarpaulins", "vises", "wristbands", "crossbows",
    "doorstops", "handrails", "inkstands", "jetties", "kilts", "lintels", "mangles", "nutcrackers",
    "overalls", "ravelins", "spigots", "thatch", "wainscots", "pontoons", "culverts", "trestles",
    "pagodas",
)  # fmt: skip

SUBJECTS_OF_THE_TWENTY_SIXTH = (
    "brackets", "bridles", "bungalows", "cabooses", "chaises", "cobblestones", "coasters", "cots",
    "daggers", "dinghies", "fenders", "footstools", "halberds", "jackets", "mugs", "paddles",
    "pails", "parkas", "pillars", "plinths", "tongs", "trowels", "trunks", "yurts", "abbeys",
    "alcoves", "amulets", "anklets", "arbours", "armbands", "badges", "barges", "basins",
    "beakers", "beanbags", "bedspreads", "berets", "bibs", "binoculars", "blankets", "blinds",
    "bowsprits", "brushes", "bulbs", "bunkers", "cabinets", "cakestands", "camshafts", "capes",
    "cardigans", "casks", "chains", "chapels", "cisterns", "clamps", "clasps",
)  # fmt: skip

SUBJECTS_OF_THE_TWENTY_SEVENTH = (
    "cloaks", "coffers", "collars", "consoles", "cornices", "corsets", "crayons", "crests",
    "cribs", "cushions", "dials", "diadems", "drawers", "drills", "dungarees", "dynamos",
    "epergnes", "ewers", "fiddles", "fireplaces", "flagons", "flippers", "fryers", "gantries",
    "gavels", "girdles", "goggles", "griddles", "hampers", "harnesses", "headbands", "hobbyhorses",
    "hoists", "hoods", "hooks", "jewels", "joists", "kegs", "kiosks", "lassos", "latches",
    "leashes", "lids", "lunchboxes", "manacles", "mantelpieces", "megaphones", "mobiles",
    "muzzles", "notepads", "obelisks", "peepholes", "pegs", "pencils", "pendants", "petticoats",
    "pipettes", "planters", "platters", "plugs",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Drawn:
    """One run to write: its cause and kind, what it is about, and what the fault should cost."""

    cause: str
    sub_cause: str
    subject: str
    cost: float | None


@dataclass(frozen=True, slots=True)
class Round:
    """A round after the tenth: its seed, runs, what they may be about, and who chose before it."""

    seed: str
    """The commit that main stood at when the draw was written."""
    count: int
    subjects: tuple[str, ...]
    after: str = ""
    """The round whose subjects are used up."""


ROUNDS = {
    "eleventh": Round("793bfa4", 30, (*SUBJECTS, *MORE_SUBJECTS), after="tenth"),
    "twelfth": Round("dd6c441", 46, SUBJECTS_OF_THE_TWELFTH),
    "thirteenth": Round("ff421e6", 45, SUBJECTS_OF_THE_THIRTEENTH),
    "fourteenth": Round("0a1742c", 45, SUBJECTS_OF_THE_THIRTEENTH, after="thirteenth"),
    "fifteenth": Round("bf04724", 45, SUBJECTS_OF_THE_FIFTEENTH),
    "sixteenth": Round("b2139a2", 45, SUBJECTS_OF_THE_FIFTEENTH, after="fifteenth"),
    "seventeenth": Round("dfecd1c", 45, SUBJECTS_OF_THE_SEVENTEENTH),
    "eighteenth": Round("8a8f8e0", 45, SUBJECTS_OF_THE_SEVENTEENTH, after="seventeenth"),
    "nineteenth": Round("877f2b7", 45, SUBJECTS_OF_THE_NINETEENTH),
    "twentieth": Round("cb2cb8c", 45, SUBJECTS_OF_THE_TWENTIETH),
    "twenty-first": Round("7e0b4ce", 45, SUBJECTS_OF_THE_TWENTY_FIRST),
    "twenty-second": Round("6c69d7f", 45, SUBJECTS_OF_THE_TWENTY_SECOND),
    "twenty-third": Round("b266583", 45, SUBJECTS_OF_THE_TWENTY_THIRD),
    "twenty-fourth": Round("54d745c", 45, SUBJECTS_OF_THE_TWENTY_FOURTH),
    "twenty-fifth": Round("3719c1c", 36, SUBJECTS_OF_THE_TWENTY_FIFTH),
    "twenty-sixth": Round("3150797", 45, SUBJECTS_OF_THE_TWENTY_SIXTH),
    "twenty-seventh": Round("aae0e6c", 45, SUBJECTS_OF_THE_TWENTY_SEVENTH),
}


def draw() -> tuple[tuple[Drawn, ...], tuple[Drawn, ...]]:
    """Return the runs that are held out and those that guide the rules."""
    chance = random.Random(SEED)
    kinds = [(row["cause"], row["sub_cause"]) for row in _runs_before()]
    subjects = chance.sample(SUBJECTS, HELD + GUIDING)
    held = sorted(chance.sample(kinds, HELD))
    guiding = sorted(chance.sample(kinds, GUIDING))
    runs = [
        Drawn(cause, sub, subject, None if cause in NO_COST else chance.choice(COSTS))
        for (cause, sub), subject in zip(held + guiding, subjects, strict=True)
    ]
    return tuple(runs[:HELD]), tuple(runs[HELD:])


def draw_round(name: str) -> tuple[Drawn, ...]:
    """Return the runs of a later round: kinds as before, and subjects that no round has had."""
    asked = ROUNDS[name]
    used = _subjects(asked.after) if asked.after else set()
    return _drawn(asked.seed, asked.count, [each for each in asked.subjects if each not in used])


def _subjects(name: str) -> set[str]:
    runs = chain.from_iterable(draw()) if name == "tenth" else draw_round(name)
    return {run.subject for run in runs}


def _drawn(seed: str, count: int, subjects: Sequence[str]) -> tuple[Drawn, ...]:
    """Return ``count`` runs whose kinds, subjects and costs the seed draws, in that order."""
    chance = random.Random(seed)
    kinds = sorted(
        chance.sample([(row["cause"], row["sub_cause"]) for row in _runs_before()], count)
    )
    return tuple(
        Drawn(cause, sub, subject, None if cause in NO_COST else chance.choice(COSTS))
        for (cause, sub), subject in zip(kinds, chance.sample(subjects, count), strict=True)
    )


def _runs_before() -> list[dict[str, str]]:
    """Return the real runs of the rounds before that were kept."""
    rows: list[dict[str, str]] = []
    for name in BEFORE:
        with (HERE / name).open(newline="", encoding="utf-8") as file:
            rows += csv.DictReader(file)
    return [row for row in rows if row["origin"] == "real-run" and not row["dropped"]]


if __name__ == "__main__":
    held, guiding = draw()
    draws = {f"--{name}": draw_round(name) for name in ROUNDS} | {"--guiding": guiding}
    asked = next((draws[each] for each in sys.argv[1:] if each in draws), held)
    for number, run in enumerate(asked, 1):
        cost = f"{run.cost} times" if run.cost else "-"
        print(f"{number:3} {run.cause:14} {run.sub_cause:20} {run.subject:20} {cost}")
