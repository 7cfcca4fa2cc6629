"""Runs the situations of origin ``real-run`` and keeps their records and proofs.

    python tests/accuracy/situations/generate.py [--privileged] [ID...]

Every situation runs with its fault and without it, in turns; the record of the last run with the
fault is kept, and ``proof.csv`` gets the medians of both rates. ``--privileged`` needs root and
control groups of version 1: the runs get a group of their own, whose share of the cores keeps other
programs from slowing them, and which holds the quota and the drive's limit. Without it those two
situations are left out.
"""

import argparse
import csv
import datetime
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import programs2
import programs3
import programs4
import programs5
import programs6
import programs6dev
import programs6dev2
import programs6dev3
import programs6dev4
import programs7
import programs8
import programs8dev
import programs9
import programs10
import programs10b
import programs10dev
import programs10devb
import programs10devc
import programs10devd
import programs11
import programs11b
import programs11c
import programs12
import programs12b
import programs13
import programs13b
import programs13c
import programs14
import programs14b
import programs14c
import programs15
import programs15b
import programs15c
import programs16
import programs16b
import programs16c
import programs17
import programs17b
import programs17c
import programs18
import programs18b
import programs18c
import programs19
import programs19b
import programs19c
import programs20
import programs20b
import programs20c
import programs21
import programs21b
import programs21c
import programs22
import programs22b
import programs22c
import programs23
import programs23b
import programs23c
import programs24
import programs24b
import programs24c
import programs25
import programs25b
import programs25c
import programs26
import programs26b
import programs26c
import programs27
import programs27b
import programs27c
from programs import CORES, RANKS, SITUATIONS

from trainwright.diagnose import record as records
from trainwright.diagnose import surroundings
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.evidence_readings import HostReadings

HERE = Path(__file__).parent
CPU = Path(f"/sys/fs/cgroup/cpu/trainwright-situations-{os.getpid()}")
DRIVE = Path(f"/sys/fs/cgroup/blkio/trainwright-situations-{os.getpid()}")
SHARES = 200_000
"""Against the 1024 of a session of another program."""
READ_BYTES_S = {
    "run-throttled-files": 32 << 20,
    "run-drive-windows": 12 << 20,
    "run-throttled-groups": 12 << 20,
    "run-cones-from-afar": 10 << 20,
    "run-antennas-from-afar": 20 << 20,
    "run-comets-mapped": 80 << 20,
    "run-butterflies-from-afar": 8 << 20,
    "run-harvesters-from-afar": 10 << 20,
    "run-chronicles-page-by-page": 7 << 20,
}
"""Of the throttled drive: a slow network store, and a slower one."""
QUOTAS = {
    "run-cpu-quota": 0.6,
    "run-narrow-quota": 0.35,
    "run-half-core": 0.5,
    "run-quota-above-one": 1.2,
    "run-third-core": 0.33,
    "run-tight-quota": 0.7,
    "run-depth-quota": 0.4,
    "run-tiles-quota": 0.55,
    "run-filtered-quota": 0.75,
    "run-motion-quota": 0.45,
    "run-pollen-quota": 0.65,
    "run-poems-quota": 1.4,
    "run-taxis-quota": 1.5,
    "run-sudoku-quota": 0.8,
    "run-crosswords-quota": 0.9,
    "run-candles-quota": 0.6,
    "run-forklifts-quota": 0.37,
    "run-shoes-quota": 0.65,
    "run-noodles-quota": 1.0,
    "run-batteries-quota": 0.33,
    "run-accordions-quota": 0.6,
    "run-beavers-quota": 0.45,
    "run-soy-quota": 0.5,
    "run-saws-quota": 0.35,
    "run-chalk-quota": 0.45,
    "run-cherries-quota": 1.2,
    "run-dandelions-quota": 0.6,
    "run-bananas-quota": 0.18,
    "run-nails-quota": 1.15,
    "run-thermometers-quota": 0.45,
    "run-ferries-quota": 0.6,
    "run-valves-quota": 0.4,
    "run-lasers-quota": 0.6,
    "run-pyjamas-quota": 0.65,
    "run-almanacs-quota": 1.1,
    "run-rhinos-quota": 0.55,
    "run-sea-cucumbers-quota": 0.6,
    "run-xylophones-quota": 0.3,
    "run-lagoons-quota": 0.6,
    "run-seismographs-quota": 0.3,
    "run-millstones-quota": 0.5,
    "run-dormers-quota": 0.4,
    "run-tiaras-quota": 0.5,
    "run-dollhouses-quota": 0.22,
    "run-thermoses-quota": 0.6,
    "run-jackboots-quota": 0.5,
    "run-ratchets-quota": 0.23,
    "run-flints-quota": 0.34,
    "run-quoits-quota": 0.45,
    "run-cakestands-quota": 0.23,
    "run-cisterns-quota": 0.68,
    "run-kegs-quota": 0.64,
}
"""Cores of the quota."""
PERIODS_US = {
    "run-ferries-quota": 20_000,
    "run-lasers-quota": 250_000,
    "run-sea-cucumbers-quota": 50_000,
    "run-seismographs-quota": 40_000,
    "run-millstones-quota": 30_000,
    "run-dollhouses-quota": 50_000,
    "run-jackboots-quota": 200_000,
    "run-flints-quota": 60_000,
    "run-cakestands-quota": 150_000,
    "run-kegs-quota": 80_000,
}
"""The period of a quota, where it is not 100 ms."""
SPIN = "while True: pass"
MULTIPLY = "import torch; x = torch.rand(512, 512)\nwhile True: x @ x"
COMPRESS = "import os, zlib; x = os.urandom(1 << 22)\nwhile True: zlib.compress(x, 9)"
SORT = "import random; x = [random.random() for _ in range(10**6)]\nwhile True: sorted(x)"
TRAIN = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 512))
optimizer = torch.optim.Adam(model.parameters())
while True:
    loss = model(torch.randn(256, 512)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
FORECAST = """
import torch
model = torch.nn.GRU(8, 64, batch_first=True)
optimizer = torch.optim.AdamW(model.parameters())
while True:
    loss = model(torch.randn(64, 48, 8))[0].square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
FOLD = """
import torch
from torch.nn import Linear, SELU
model = torch.nn.Sequential(Linear(40, 512), SELU(), Linear(512, 512), SELU(), Linear(512, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
while True:
    risk = model(torch.randn(256, 40))[:, 0]
    loss = (risk.logcumsumexp(0) - risk).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
SWEEP = """
import torch
model = torch.nn.Sequential(torch.nn.Conv2d(1, 24, 5), torch.nn.GELU(), torch.nn.Conv2d(24, 1, 5))
optimizer = torch.optim.Adam(model.parameters())
while True:
    loss = model(torch.randn(16, 1, 48, 48)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
BACK_UP = "import lzma, os; x = os.urandom(1 << 20)\nwhile True: lzma.compress(x)"
SIMULATE = "import numpy as n; s = n.zeros(4)\nwhile True: s = 0.9 * s + n.random.randn(4)"
RENDER = """
import numpy as n
across, down = n.meshgrid(n.linspace(-2, 1, 600), n.linspace(-1, 1, 400))
while True:
    place = point = across + 1j * down
    for _ in range(40):
        place = n.where(abs(place) < 2, place * place + point, place)
"""
CALIBRATE = (
    "import numpy as n; x = n.random.rand(512, 512)\nwhile True: n.fft.irfft2(n.fft.rfft2(x))"
)
FLY = """
import numpy as n
places, speeds = n.random.randn(2, 40, 3)
while True:
    apart = n.diff(places, axis=0)
    length = n.linalg.norm(apart, axis=1, keepdims=True)
    pull = n.clip(length - 0.1, 0, 9) * apart / length
    speeds[:-1] += 1e-3 * pull
    speeds[1:] -= 1e-3 * pull
    places += 1e-3 * speeds
"""
INVENTORY = """
import sqlite3, time
stock = sqlite3.connect(":memory:")
stock.execute("create table pipe (maker, year, price)")
rows = ((n % 97, 1700 + n * n % 311, n * 7919 % 5000) for n in range(200_000))
stock.executemany("insert into pipe values (?, ?, ?)", rows)
while True:
    began = time.perf_counter()
    stock.execute("select maker, avg(price) from pipe group by maker, year order by 2").fetchall()
    time.sleep(0.7 * (time.perf_counter() - began))
"""
SOLVE = """
import numpy as n
circuit = n.random.randn(400, 400) + 400 * n.eye(400)
volts = n.random.randn(400)
while True:
    for _ in range(8):
        currents = n.linalg.solve(circuit, volts)
        volts = n.tanh(currents)
"""
SHRINK = """
import io, os
from PIL import Image
picture = Image.frombytes("RGB", (2048, 1536), os.urandom(2048 * 1536 * 3))
while True:
    small = picture.rotate(90, expand=True).resize((600, 800), Image.Resampling.LANCZOS)
    small.save(io.BytesIO(), "WEBP", quality=80)
"""
COUNT = """
import numpy as n, time
from scipy import ndimage
above = ndimage.gaussian_filter(n.random.rand(1500, 1500), 3)
while True:
    began = time.perf_counter()
    plants, _ = ndimage.label(above > 0.5)
    n.bincount(plants.ravel())
    time.sleep(0.2 * (time.perf_counter() - began))
"""
FIRE = """
import numpy as n
kiln = n.zeros((300, 300))
while True:
    kiln[0] = 1300
    beside = kiln[:-2, 1:-1] + kiln[2:, 1:-1] + kiln[1:-1, :-2] + kiln[1:-1, 2:]
    kiln[1:-1, 1:-1] += 0.2 * (beside - 4 * kiln[1:-1, 1:-1])
"""
CHECK = "import hashlib, os; x = os.urandom(1 << 24)\nwhile True: hashlib.sha256(x)"
PARSE = """
import json
lines = [json.dumps({"bale": n, "weights": [n / 7 + k for k in range(40)]}) for n in range(5000)]
while True:
    sum(json.loads(line)["weights"][3] for line in lines)
"""
ROUTE = """
import heapq, random
wells = [[(random.randrange(20_000), random.random()) for _ in range(5)] for _ in range(20_000)]
while True:
    far, queue = {}, [(0.0, random.randrange(20_000))]
    while queue:
        way, well = heapq.heappop(queue)
        if well not in far:
            far[well] = way
            for other, more in wells[well]:
                heapq.heappush(queue, (way + more, other))
"""
SMOOTH = """
import numpy as n
from scipy import ndimage
slices = n.random.rand(24, 256, 256)
while True:
    for each in slices:
        ndimage.median_filter(each, 7)
"""
DRAW_MAPS = """
import numpy as n
from scipy import ndimage
heights = n.random.rand(700, 700)
while True:
    turned = ndimage.rotate(heights, 17, order=3, reshape=False)
    n.gradient(ndimage.gaussian_filter(turned, 2))
"""
WEAVE = """
import itertools
warp = [n * n % 7 < 3 for n in range(400)]
weft = [n % 5 < 2 for n in range(400)]
while True:
    cloth = [[a ^ b for a in warp] for b in weft]
    max(len(list(run)) for row in cloth for _, run in itertools.groupby(row))
"""
CUT_FILMS = """
import io
import numpy as n
from PIL import Image
noise = n.random.default_rng(3).integers(0, 255, (24, 24, 32, 3), n.uint8)
frames = [Image.fromarray(each).resize((320, 240), Image.Resampling.BICUBIC) for each in noise]
while True:
    few = [each.quantize(64) for each in frames]
    few[0].save(io.BytesIO(), "GIF", save_all=True, append_images=few[1:])
"""
PAIR_UP = """
import numpy as n
from scipy.optimize import linear_sum_assignment
socks = n.random.rand(2, 500, 12)
while True:
    apart = n.abs(socks[0][:, None] - socks[1][None]).sum(2)
    linear_sum_assignment(apart)
    socks = n.random.rand(2, 500, 12)
"""
ALIGN = """
import numpy as n
from scipy.spatial import cKDTree
whole = n.random.rand(20_000, 3)
tree, scan = cKDTree(whole), n.random.rand(4_000, 3)
while True:
    near = whole[tree.query(scan)[1]]
    turn, _, back = n.linalg.svd((scan - scan.mean(0)).T @ (near - near.mean(0)))
    scan = (scan - scan.mean(0)) @ turn @ back + near.mean(0)
"""
SHARPEN = """
import numpy as n
seen = n.random.rand(16, 128, 128) + 0.1
blur = n.fft.rfftn(n.random.rand(*seen.shape))
while True:
    sharp = seen
    for _ in range(10):
        again = n.fft.irfftn(n.fft.rfftn(sharp) * blur, seen.shape, (0, 1, 2))
        off = n.fft.rfftn(seen / again) * blur.conj()
        sharp = sharp * n.fft.irfftn(off, seen.shape, (0, 1, 2))
        sharp /= sharp.mean()
"""
ENGRAVE = """
import math, random, time
while True:
    began = time.perf_counter()
    strokes = [(random.random(), random.random()) for _ in range(300)]
    at = strokes.pop()
    while strokes:
        near = min(strokes, key=lambda stroke: math.dist(at, stroke))
        strokes.remove(near)
        at = near
    time.sleep(0.5 * (time.perf_counter() - began))
"""
QUERY = """
import os, random, sqlite3
os.nice(5)
base = sqlite3.connect(":memory:")
base.execute("create table passed (gate integer, at real, who integer)")
rows = [(random.randrange(40), random.random(), random.randrange(2000)) for _ in range(50_000)]
base.executemany("insert into passed values (?, ?, ?)", rows)
while True:
    base.execute("select gate, count(distinct who), avg(at) from passed group by gate").fetchall()
"""
PACK = """
import bz2, os, threading
tracks = os.urandom(1 << 19)
def pack():
    while True:
        bz2.compress(tracks)
for _ in range(5):
    threading.Thread(target=pack).start()
pack()
"""
SORT_BERRIES = """
import numpy as n
from PIL import Image, ImageFilter
noise = n.random.default_rng(5).integers(0, 255, (40, 60, 3), n.uint8)
tray = Image.fromarray(noise).resize((600, 400), Image.Resampling.BICUBIC)
while True:
    red, _, _ = tray.filter(ImageFilter.MedianFilter(5)).split()
    red.point([0] * 128 + [1] * 128).histogram()
"""
SEARCH = r"""
import random, re
said = " ".join(random.choice(("stone", "sand", "night", "sting", "tail")) for _ in range(20_000))
while True:
    re.findall(r"(\w+) (?=sting (?:night|sand))", said)
"""
TIDES = """
import numpy as n
height, flow = n.random.rand(200, 260), n.zeros((2, 200, 260))
while True:
    flow[0] -= 0.1 * (height - n.roll(height, 1, 0))
    flow[1] -= 0.1 * (height - n.roll(height, 1, 1))
    height -= 0.1 * (n.roll(flow[0], -1, 0) - flow[0] + n.roll(flow[1], -1, 1) - flow[1])
"""
DICTIONARIES = """
import difflib, random
words = ["".join(random.choices("aeilnorst", k=random.randint(4, 9))) for _ in range(3000)]
while True:
    difflib.get_close_matches(random.choice(words), words, 5)
"""
SCORES = """
from PIL import Image, ImageDraw
while True:
    page = Image.new("L", (1240, 1754), 255)
    pen = ImageDraw.Draw(page)
    for line in range(60, 1700, 12):
        pen.line((60, line, 1180, line), 0, 2)
        for note in range(80, 1160, 30):
            pen.ellipse((note, line, note + 14, line + 10), fill=0)
    page.resize((620, 877), Image.Resampling.LANCZOS)
"""
LETTERS = """
import threading
import numpy as n
def ordered(book):
    letters = n.random.default_rng(book).integers(0, 1 << 40, 400_000)
    while True:
        n.sort(letters)
for book in range(2):
    threading.Thread(target=ordered, args=(book,)).start()
ordered(2)
"""
WEIGHED = """
import csv, io, random
drawn = random.Random(21)
rows = [(drawn.randrange(60), drawn.choice("KSMG"), drawn.uniform(8, 40)) for _ in range(20_000)]
text = io.StringIO()
csv.writer(text).writerows(rows)
while True:
    tons = {}
    for lorry, kind, weight in csv.reader(io.StringIO(text.getvalue())):
        tons[lorry, kind] = tons.get((lorry, kind), 0.0) + float(weight)
"""
GAITS = """
import numpy as n
swings = n.random.default_rng(21).standard_normal(12_000).cumsum()
while True:
    around = n.lib.stride_tricks.sliding_window_view(swings, 75)
    even = swings[37:-37] - n.median(around, axis=1)
    n.flatnonzero((even[1:] > 0) & (even[:-1] <= 0))
"""
PLANS = """
import numpy as n
from scipy.spatial import Delaunay
ground = n.random.default_rng(22)
while True:
    plan = Delaunay(ground.random((6_000, 2)))
    n.bincount(plan.neighbors.ravel() + 1)
"""
PARADES = """
import math, random
groups = [(random.random(), random.random()) for _ in range(120)]
heat = 1.0
while True:
    one, other = sorted(random.sample(range(121), 2))
    turned = groups[:one] + groups[one:other][::-1] + groups[other:]
    less = sum(map(math.dist, groups, groups[1:])) - sum(map(math.dist, turned, turned[1:]))
    if less > 0 or random.random() < math.exp(less / heat):
        groups = turned
    heat = max(0.9999 * heat, 1e-3)
"""
LOGARITHMS = """
import decimal
decimal.getcontext().prec = 300
while True:
    table = [decimal.Decimal(number).log10() for number in range(2, 500)]
    [high - low for low, high in zip(table, table[1:])]
"""
DYKES = """
import numpy as n
from scipy import sparse
from scipy.sparse.linalg import splu
along = sparse.diags([1.0, -2.0, 1.0], [-1, 0, 1], (90, 90))
ground = (sparse.identity(8100) - sparse.kronsum(along, along)).tocsc()
water = n.random.rand(8100)
while True:
    water = splu(ground).solve(water + 0.01)
"""
HAWSERS = """
import numpy as n
from scipy.integrate import solve_ivp
def hauled(_, strain):
    return n.diff(n.tanh(n.diff(strain, prepend=0.0, append=1.0)))
while True:
    solve_ivp(hauled, (0, 40), n.random.rand(50))
"""
AUCTIONS = """
import numpy as n
chance = n.random.default_rng(23)
prices = chance.lognormal(3, 1, 4_000)
while True:
    again = prices[chance.integers(0, 4_000, (50, 4_000))]
    n.percentile(n.median(again, axis=1), (5, 95))
"""
TUNINGS = """
import numpy as n
while True:
    for length in range(60, 200):
        string = n.random.uniform(-1, 1, length)
        for _ in range(200):
            string = 0.498 * (string + n.roll(string, 1))
"""
ROSTERS = """
import random
while True:
    nurses = [[random.random() < 0.4 for _ in range(21)] for _ in range(30)]
    for _ in range(2000):
        one, other, shift = random.randrange(30), random.randrange(30), random.randrange(21)
        tired = sum(map(sum, nurses))
        nurses[one][shift], nurses[other][shift] = nurses[other][shift], nurses[one][shift]
        rested = sum(a and b for nurse in nurses for a, b in zip(nurse, nurse[1:]))
"""
SPLINTERS = """
import numpy as n
from scipy import ndimage
skin = n.random.default_rng(24).random((600, 600))
while True:
    found, many = ndimage.label(ndimage.gaussian_filter(skin, 2) > 0.52)
    ndimage.sum(skin, found, range(1, many + 1))
"""
CHECKOUTS = """
import itertools
fields = [ring * number for number in range(1, 21) for ring in (1, 2, 3)] + [25, 50]
while True:
    ways = {}
    for darts in itertools.product(fields, repeat=3):
        ways[sum(darts)] = ways.get(sum(darts), 0) + 1
"""
STAIRWELLS = """
import numpy as n
from scipy.interpolate import CubicSpline
while True:
    up = n.cumsum(n.random.rand(400) + 0.1)
    rail = CubicSpline(up, n.random.rand(400, 3))(n.linspace(up[0], up[-1], 20_000))
    n.sqrt(n.square(n.diff(rail, axis=0)).sum(1)).sum()
"""
FELTERS = """
import numpy as n
chance = n.random.default_rng(26)
ends = chance.random((2, 300, 2))
while True:
    ends = (ends + 0.01 * chance.standard_normal(ends.shape)) % 1
    (ax, ay), (bx, by) = (ends[0].T[..., None], ends[1].T[..., None])
    side = (bx - ax) * (ay.T - ay) - (by - ay) * (ax.T - ax)
    other = (bx - ax) * (by.T - ay) - (by - ay) * (bx.T - ax)
    ((side * other < 0) & (side * other < 0).T).sum()
"""
CUTTERS = """
import random
while True:
    pieces = [(random.randrange(5, 60), random.randrange(1, 90)) for _ in range(60)]
    best = [0] * 1001
    for long, worth in pieces:
        for cloth in range(1000, long - 1, -1):
            best[cloth] = max(best[cloth], best[cloth - long] + worth)
"""
OTHERS = {
    "run-foreign-load": 6 * [SPIN],
    "run-neighbour-jobs": 3 * [MULTIPLY],
    "run-compressing-neighbours": 4 * [COMPRESS],
    "run-nice-views": [SORT],
    "run-second-training": [TRAIN],
    "run-busy-simulators": 3 * [SIMULATE],
    "run-yielding-restorer": [MULTIPLY],
    "run-sweep-of-forecasts": 3 * [FORECAST],
    "run-folds-at-once": 4 * [FOLD],
    "run-plates-beside": 3 * [SWEEP],
    "run-beside-backups": 2 * [BACK_UP],
    "run-beside-renders": 3 * [RENDER],
    "run-beside-aurora": [CALIBRATE],
    "run-kites-beside-flights": 3 * [FLY],
    "run-moles-beside-thumbnails": 2 * [SHRINK],
    "run-beside-bagpipes": [INVENTORY],
    "run-resistors-beside-solvers": 4 * [SOLVE],
    "run-cacti-beside-counts": [COUNT],
    "run-jars-beside-kilns": 9 * [FIRE],
    "run-thistles-beside-checksums": 6 * [CHECK],
    "run-cotton-beside-parsers": 6 * [PARSE],
    "run-camels-beside-routes": 2 * [ROUTE],
    "run-carrots-beside-smoothing": 3 * [SMOOTH],
    "run-pandas-beside-atlas": [DRAW_MAPS],
    "run-wool-beside-weaves": 10 * [WEAVE],
    "run-somersaults-beside-replays": 9 * [CUT_FILMS],
    "run-socks-beside-pairing": [PAIR_UP],
    "run-statues-beside-scans": 3 * [ALIGN],
    "run-microscopes-beside-stacks": 3 * [SHARPEN],
    "run-trophies-beside-engraving": [ENGRAVE],
    "run-gates-beside-queries": 4 * [QUERY],
    "run-reindeer-beside-packing": [PACK],
    "run-cranberries-beside-sorting": 10 * [SORT_BERRIES],
    "run-scorpions-beside-searches": 4 * [SEARCH],
    "run-piers-beside-tides": 4 * [TIDES],
    "run-palindromes-beside-dictionaries": 4 * [DICTIONARIES],
    "run-minuets-beside-scores": 3 * [SCORES],
    "run-anagrams-beside-letters": [LETTERS],
    "run-gravel-pits-beside-weighbridges": 10 * [WEIGHED],
    "run-horseshoes-beside-gaits": 4 * [GAITS],
    "run-slides-beside-plans": 3 * [PLANS],
    "run-stilts-beside-parades": 3 * [PARADES],
    "run-slide-rules-beside-logarithms": 7 * [LOGARITHMS],
    "run-buckets-beside-dykes": [DYKES],
    "run-capstans-beside-hawsers": 9 * [HAWSERS],
    "run-tin-soldiers-beside-auctions": 3 * [AUCTIONS],
    "run-ukuleles-beside-tunings": 8 * [TUNINGS],
    "run-crutches-beside-rosters": 4 * [ROSTERS],
    "run-tweezers-beside-splinters": 3 * [SPLINTERS],
    "run-dartboards-beside-checkouts": 3 * [CHECKOUTS],
    "run-handrails-beside-stairwells": 9 * [STAIRWELLS],
    "run-berets-beside-felters": 8 * [FELTERS],
    "run-cushions-beside-cutters": 5 * [CUTTERS],
}
"""Programs that compute beside the run."""

GROUPED = (*READ_BYTES_S, *QUOTAS)
"""Those that need a control group."""
PROGRAMS = {
    "programs.py": SITUATIONS,
    "programs2.py": programs2.SECOND,
    "programs3.py": programs3.THIRD,
    "programs4.py": programs4.FOURTH,
    "programs5.py": programs5.FIFTH,
    "programs6dev.py": programs6dev.GUIDING,
    "programs6dev2.py": programs6dev2.FURTHER,
    "programs6dev3.py": programs6dev3.THIRD,
    "programs6dev4.py": programs6dev4.LAST,
    "programs6.py": programs6.SIXTH,
    "programs7.py": programs7.SEVENTH,
    "programs8dev.py": programs8dev.ALIKE,
    "programs8.py": programs8.EIGHTH,
    "programs9.py": programs9.NINTH,
    "programs10dev.py": programs10dev.UNNEEDED,
    "programs10devb.py": programs10devb.WATCHED,
    "programs10devc.py": programs10devc.FED,
    "programs10devd.py": programs10devd.SHARED,
    "programs10.py": programs10.TENTH,
    "programs10b.py": programs10b.TENTH_B,
    "programs11.py": programs11.ELEVENTH,
    "programs11b.py": programs11b.ELEVENTH_B,
    "programs11c.py": programs11c.ELEVENTH_C,
    "programs12.py": programs12.TWELFTH,
    "programs12b.py": programs12b.TWELFTH_B,
    "programs13b.py": programs13b.THIRTEENTH_B,
    "programs13.py": programs13.THIRTEENTH,
    "programs13c.py": programs13c.THIRTEENTH_C,
    "programs14b.py": programs14b.FOURTEENTH_B,
    "programs14.py": programs14.FOURTEENTH,
    "programs14c.py": programs14c.FOURTEENTH_C,
    "programs15.py": programs15.FIFTEENTH,
    "programs15b.py": programs15b.FIFTEENTH_B,
    "programs15c.py": programs15c.FIFTEENTH_C,
    "programs16.py": programs16.SIXTEENTH,
    "programs16b.py": programs16b.SIXTEENTH_B,
    "programs16c.py": programs16c.SIXTEENTH_C,
    "programs17.py": programs17.SEVENTEENTH,
    "programs17b.py": programs17b.SEVENTEENTH_B,
    "programs17c.py": programs17c.SEVENTEENTH_C,
    "programs18.py": programs18.EIGHTEENTH,
    "programs18b.py": programs18b.EIGHTEENTH_B,
    "programs18c.py": programs18c.EIGHTEENTH_C,
    "programs19.py": programs19.NINETEENTH,
    "programs19b.py": programs19b.NINETEENTH_B,
    "programs19c.py": programs19c.NINETEENTH_C,
    "programs20.py": programs20.TWENTIETH,
    "programs20b.py": programs20b.TWENTIETH_B,
    "programs20c.py": programs20c.TWENTIETH_C,
    "programs21.py": programs21.TWENTY_FIRST,
    "programs21b.py": programs21b.TWENTY_FIRST_B,
    "programs21c.py": programs21c.TWENTY_FIRST_C,
    "programs22.py": programs22.TWENTY_SECOND,
    "programs22b.py": programs22b.TWENTY_SECOND_B,
    "programs22c.py": programs22c.TWENTY_SECOND_C,
    "programs23.py": programs23.TWENTY_THIRD,
    "programs23b.py": programs23b.TWENTY_THIRD_B,
    "programs23c.py": programs23c.TWENTY_THIRD_C,
    "programs24.py": programs24.TWENTY_FOURTH,
    "programs24b.py": programs24b.TWENTY_FOURTH_B,
    "programs24c.py": programs24c.TWENTY_FOURTH_C,
    "programs25.py": programs25.TWENTY_FIFTH,
    "programs25b.py": programs25b.TWENTY_FIFTH_B,
    "programs25c.py": programs25c.TWENTY_FIFTH_C,
    "programs26.py": programs26.TWENTY_SIXTH,
    "programs26b.py": programs26b.TWENTY_SIXTH_B,
    "programs26c.py": programs26c.TWENTY_SIXTH_C,
    "programs27.py": programs27.TWENTY_SEVENTH,
    "programs27b.py": programs27b.TWENTY_SEVENTH_B,
    "programs27c.py": programs27c.TWENTY_SEVENTH_C,
}
"""The files, and the situations of each."""
ALL = {name: made for situations in PROGRAMS.values() for name, made in situations.items()}
TOGETHER = (
    *RANKS,
    "run-embedding-gradients",
    "run-gpt-gradients",
    "run-gathered-features",
    "run-sharded-optimizer",
    "run-averaged-models",
    "run-gathered-scores",
    "run-tagger-gradients",
    "run-averaged-policies",
    "run-gathered-objects",
    "run-straggling-rank",
    "run-tensor-by-tensor",
    "run-paired-ranks",
    "run-shared-statistics",
    "run-moving-gradients",
    "run-split-layers",
    "run-broadcast-bank",
    "run-waiting-rank",
    "run-norms-in-turn",
    "run-identities-reduced",
    "run-served-weights",
    "run-uneven-captions",
    "run-small-buckets",
    "run-gathered-layers",
    "run-keys-passed-on",
    "run-summed-prices",
    "run-summed-headlines",
    "run-streets-in-shards",
    "run-formula-gradients",
    "run-clouds-reduced-early",
    "run-flares-split-in-order",
    "run-gaits-by-experts",
    "run-pallets-in-halves",
    "run-echo-gradients",
    "run-masks-in-shards",
    "run-magpies-heads-exchanged",
    "run-vinegar-gradients",
    "run-slugs-of-two-gardens",
    "run-baskets-items-apart",
    "run-pine-cones-by-halves",
    "run-radish-gradients",
    "run-sparrow-gradients",
    "run-snail-gradients",
    "run-cinnamon-grades-apart",
    "run-leather-codebooks-shared",
    "run-mouse-gradients",
    "run-reeds-edges-passed",
    "run-palms-balanced",
    "run-ivy-neighbours-gathered",
    "run-oranges-changed-over",
    "run-squirrel-gradients",
    "run-cabbage-gradients",
    "run-silver-gradients",
    "run-hinges-bent-in-halves",
    "run-lens-gradients",
    "run-gear-gradients",
    "run-grammar-gradients",
    "run-judo-between-partners",
    "run-coats-of-two-tailors",
    "run-draughts-gradients",
    "run-poster-gradients",
    "run-sheepdogs-flock-in-halves",
    "run-mangoes-channels-gathered",
    "run-ducklings-best-followed",
    "run-polar-bears-ice-told",
    "run-lobster-gradients",
    "run-waltzes-by-couples",
    "run-marimba-gradients",
    "run-turret-gradients",
    "run-carillon-gradients",
    "run-spires-drawn-in-turn",
    "run-staircases-lower-and-upper",
    "run-amber-two-views",
    "run-oasis-gradients",
    "run-kiln-gradients",
    "run-snowmen-of-two-yards",
    "run-carousels-solved-together",
    "run-meadow-gradients",
    "run-bookmark-gradients",
    "run-greenhouse-gradients",
    "run-yo-yos-thrown-again",
    "run-samovars-cells-in-halves",
    "run-pestles-waves-turned-over",
    "run-portholes-two-logs",
    "run-lockets-changing-hands",
    "run-whisk-gradients",
    "run-doormat-gradients",
    "run-kazoo-gradients",
    "run-cartwheel-gradients",
    "run-abacus-gradients",
    "run-crossbows-whitened-together",
    "run-jetty-gradients",
    "run-trestles-short-and-long",
    "run-cabinet-gradients",
    "run-cardigans-shared-out-together",
    "run-bulbs-codes-counted-together",
    "run-chaises-norms-in-turn",
    "run-dynamo-gradients",
    "run-flagon-gradients",
    "run-cornices-plain-and-carved",
)
"""Those that run on two processes when the fault is in."""
ONE_CORE = (
    "run-one-core",
    "run-pinned-gpt",
    "run-pinned-tagger",
    "run-pinned-clicks",
    "run-residues-one-core",
    "run-paths-one-core",
    "run-stereo-one-core",
    "run-loans-one-core",
    "run-perfumes-one-core",
    "run-pollen-one-core",
    "run-dolls-one-core",
    "run-bread-one-core",
    "run-monkeys-one-core",
    "run-walruses-one-core",
    "run-hulls-one-core",
    "run-hearths-each-second-core",
)
"""Those that may use a single core when the fault is in."""
VARIABLES = {
    "run-launcher-threads": {"OMP_NUM_THREADS": "1"},
    "run-bound-threads": {"GOMP_CPU_AFFINITY": "0"},
    "run-fresh-mappings": {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "0"},
    "run-sixteen-threads": {"OMP_NUM_THREADS": "16"},
    "run-small-mappings": {"MALLOC_MMAP_THRESHOLD_": "65536"},
    "run-inks-given-back": {"MALLOC_MMAP_THRESHOLD_": "16384", "MALLOC_TRIM_THRESHOLD_": "0"},
    "run-transits-active": {"OMP_NUM_THREADS": "8", "OMP_WAIT_POLICY": "active"},
    "run-hives-one-thread": {"OMP_NUM_THREADS": "1"},
    "run-roars-one-place": {
        "OMP_PROC_BIND": "master",
        "OMP_PLACES": "threads",
        "OMP_WAIT_POLICY": "passive",
    },
}
"""What a launcher has set for the run when the fault is in."""
NICE = {"run-nice-views": 5, "run-yielding-restorer": 3}
"""What the run yields to others when the fault is in."""
UNTIMED = (
    "run-unwatched",
    "run-glimpsed",
    "run-attached",
    "run-seen-speaking",
    "run-seen-segmenting",
    "run-seen-policy",
    "run-seen-restoring",
    "run-seen-distilling",
    "run-seen-weather",
    "run-seen-colours",
    "run-seen-cracks",
    "run-seen-shelves",
    "run-seen-mail",
    "run-seen-parking",
    "run-seen-knees",
    "run-seen-parcels",
    "run-seen-lighthouses",
    "run-seen-engines",
    "run-seen-lullabies",
    "run-seen-submarines",
    "run-seen-storks",
    "run-seen-nets",
    "run-seen-moths",
    "run-seen-beetles",
    "run-seen-marbles",
    "run-seen-watermills",
    "run-seen-canoes",
    "run-seen-thimbles",
    "run-seen-compasses",
    "run-seen-scissors",
    "run-seen-grasshoppers",
    "run-seen-jam-jars",
    "run-seen-salamanders",
    "run-seen-shuttles",
    "run-seen-metronomes",
    "run-seen-saddles",
    "run-seen-carriages",
    "run-seen-trampolines",
    "run-seen-slippers",
    "run-seen-haystacks",
    "run-seen-earmuffs",
    "run-seen-umbrella-stands",
    "run-seen-tepees",
    "run-seen-galoshes",
    "run-seen-ferrules",
    "run-seen-bungalows",
    "run-seen-fenders",
)
"""Those that are seen from outside only."""


@contextmanager
def group(folder: Path, **settings: object) -> Iterator[Path]:
    """Make a control group for as long as it is needed."""
    folder.mkdir()
    try:
        for name, value in settings.items():
            (folder / name.replace("__", ".")).write_text(str(value))
        yield folder
    finally:
        for _ in range(100):
            try:
                folder.rmdir()
                break
            except OSError:  # its last process is not gone yet
                time.sleep(0.05)


@contextmanager
def foreign_load(programs: list[str], joined: list[Path]) -> Iterator[None]:
    """Compute in other programs meanwhile, as other users' jobs do; in the run's groups, so that
    each weighs as much as the run's own threads."""
    others = [
        subprocess.Popen([sys.executable, "-c", program], preexec_fn=lambda: _join(joined))
        for program in programs
    ]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def rate(name: str, fault: bool, seconds: float, groups: bool, record: Path | None) -> float:
    """Return the samples a second of one run, with or without the fault."""
    with ExitStack() as stack:
        joined = []
        if groups:
            settings: dict[str, object] = {"cpu__shares": SHARES}
            if fault and name in QUOTAS:
                period = PERIODS_US.get(name, 100_000)
                quota = int(QUOTAS[name] * period)
                settings |= {"cpu__cfs_period_us": period, "cpu__cfs_quota_us": quota}
            joined.append(stack.enter_context(group(CPU, **settings)))
            if fault and name in READ_BYTES_S:
                limit = f"{_drive()} {READ_BYTES_S[name]}"
                joined.append(
                    stack.enter_context(group(DRIVE, blkio__throttle__read_bps_device=limit))
                )
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="situations-", dir=ROOM))
        command = [*_program(name), "--seconds", str(seconds)]
        command += ["--fault"] if fault else []
        command += ["--record", str(record)] if record else []
        if fault and name in OTHERS:
            stack.enter_context(foreign_load(OTHERS[name], joined))
        if not (fault and name in TOGETHER):
            return _finished(_started(command, name, fault, joined, folder))
        second = [part for part in command if part not in ("--record", str(record))]
        ranks = [
            _started([*each, "--rank", str(number)], name, fault, joined, folder)
            for number, each in enumerate((command, second))
        ]
        first, _ = (_finished(each) for each in ranks)
        return first


ROOM = os.environ.get("SITUATIONS_DIR")
"""Folder on a real drive for files of the runs; None: the system's."""


def _program(name: str) -> list[str]:
    """Return the command of a situation."""
    file = next(file for file, situations in PROGRAMS.items() if name in situations)
    return [sys.executable, str(HERE / file), name]


def _join(groups: list[Path]) -> None:
    """Move this process into control groups."""
    for each in groups:
        (each / "cgroup.procs").write_text("0")


def _started(
    command: list[str], name: str, fault: bool, joined: list[Path], folder: str
) -> "subprocess.Popen[str]":
    def prepare() -> None:
        _join(joined)
        if fault and name in ONE_CORE:
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        if fault and name in NICE:
            os.nice(NICE[name])

    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=prepare,
        env=os.environ | {"SITUATIONS_DIR": folder} | (VARIABLES.get(name, {}) if fault else {}),
    )


def _finished(process: "subprocess.Popen[str]") -> float:
    out, _ = process.communicate(timeout=180)
    return float(json.loads(out.strip().splitlines()[-1])["samples_a_second"])


def _drive() -> str:
    """Return the device of the folder in which files are made, as ``major:minor``."""
    device = os.stat(ROOM or tempfile.gettempdir()).st_dev
    return f"{os.major(device)}:{os.minor(device)}"


def seen_from_outside(name: str, seconds: float, groups: bool) -> Evidence:
    """Return what can be read of a running program that nobody timed."""
    with ExitStack() as stack:
        joined = [stack.enter_context(group(CPU, cpu__shares=SHARES))] if groups else []
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="situations-", dir=ROOM))
        command = [*_program(name), "--seconds", str(2 * seconds)]
        process = _started(command, name, False, joined, folder)
        time.sleep(seconds)
        before = surroundings.observed(process.pid)
        time.sleep(seconds)
        host = surroundings.host_between(before, surroundings.observed(process.pid))
        _finished(process)
    return Evidence(
        trainwright_record=1,
        made_by="outside",
        watched_seconds=seconds,
        gpus=(),
        host=HostReadings.model_validate(host),
    )


def proven(
    name: str, rounds: int, seconds: float, groups: bool, kept: Path, pause: float
) -> dict[str, object]:
    """Return the proof of a situation; keeps the record of its last run with the fault."""
    import torch

    with_fault, without = [], []
    record = Path(tempfile.mkdtemp()) / "run.record.json"
    for _ in range(rounds):
        with_fault.append(rate(name, True, seconds, groups, record))
        without.append(rate(name, False, seconds, groups, record.with_name("without.json")))
        time.sleep(pause)
    if record.exists():
        shutil.copy(record, kept)
    shutil.rmtree(record.parent)
    slow, fast = statistics.median(with_fault), statistics.median(without)
    return {
        "id": name,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "torch": torch.__version__,
        "cores": CORES,
        "control_group": "yes" if groups else "no",
        "rounds": rounds,
        "samples_s_with": f"{slow:.4g}",
        "samples_s_without": f"{fast:.4g}",
        "times_faster": f"{fast / slow:.3g}",
    }


PAUSE_S = 2.0
"""Between rounds, so that the computer's other work goes on."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--pause", type=float, default=PAUSE_S)
    parser.add_argument("--privileged", action="store_true")
    parser.add_argument("--records", action="store_true", help="with the fault only, no proof")
    parser.add_argument("--into", type=Path, default=HERE, help="where records and proofs go")
    options = parser.parse_args()
    groups = options.privileged
    path = options.into / "proof.csv"
    (options.into / "records").mkdir(exist_ok=True)
    proofs = {}
    if path.exists():
        with path.open(encoding="utf-8", newline="") as file:
            proofs = {row["id"]: row for row in csv.DictReader(file)}
    for name in options.names or ALL:
        if name in GROUPED and not groups:
            print(f"{name}: left out, needs a control group", flush=True)
            continue
        kept = options.into / "records" / f"{name}.record.json"
        if name in UNTIMED:
            records.write(seen_from_outside(name, options.seconds, groups), kept)
            continue
        if options.records:
            kept.unlink(missing_ok=True)
            print(name, f"{rate(name, True, options.seconds, groups, kept):.4g}", flush=True)
            continue
        proofs[name] = proven(name, options.rounds, options.seconds, groups, kept, options.pause)
        print(name, proofs[name]["times_faster"], flush=True)
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(proofs[name]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(proofs[each] for each in ALL if each in proofs)


if __name__ == "__main__":
    main()
