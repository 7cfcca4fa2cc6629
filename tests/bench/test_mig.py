"""How long the best instances for 8 jobs on 2 GPUs take to find."""

import random
import statistics
import time

from trainwright.catalog.mig import mig_tables
from trainwright.mig.packing import Board, Job, pack

ROUNDS = 15


def jobs_of(dice, table):
    """Return eight jobs of different needs, each faster on more slices."""
    jobs = []
    for number in range(8):
        least, work = dice.choice([4, 6, 9, 15, 19]), dice.uniform(1, 10)
        seconds = {
            profile.name: work / profile.slices
            for profile in table.profiles
            if profile.plain and (profile.memory_gib or 0) >= least
        }
        jobs.append(Job(str(number), seconds, {name: 1 / each for name, each in seconds.items()}))
    return jobs


def test_eight_jobs_on_two_gpus(capsys):
    table = next(each for each in mig_tables() if each.id == "a100-40gb")
    boards, dice = [Board(table)] * 2, random.Random(0)
    pack(jobs_of(dice, table), boards)  # the layouts of the GPU are counted once
    taken = {goal: [] for goal in ("finish", "rate")}
    for _ in range(ROUNDS):
        jobs = jobs_of(dice, table)
        for goal, times in taken.items():
            began = time.perf_counter()
            pack(jobs, boards, goal)
            times.append(time.perf_counter() - began)
    with capsys.disabled():
        for goal, times in taken.items():
            middle, most = statistics.median(times) * 1e3, max(times) * 1e3
            print(f"\n8 jobs on 2 A100, {goal}: median {middle:.0f} ms, most {most:.0f} ms", end="")
        print()
