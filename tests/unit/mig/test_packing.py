"""The best way to put jobs onto instances, against trying every way."""

import random
from itertools import combinations, permutations, product

import pytest

from trainwright.catalog.mig import mig_tables
from trainwright.messages import UserError
from trainwright.mig.layout import Instance, layouts, room
from trainwright.mig.packing import Board, Job, pack

TABLES = {table.id: table for table in mig_tables()}
SETS = 500


def some_jobs(dice, table, count):
    """Return jobs whose memory fits the larger profiles, and that scale as they please."""
    jobs = []
    for number in range(count):
        least = dice.choice([1, 1, 2, 4, 8])
        work, speed = dice.uniform(1, 10), dice.uniform(0.5, 1)
        seconds = {
            profile.name: round(work / profile.slices**speed, 3)
            for profile in table.profiles
            if profile.plain and profile.size >= least * table.units / 8
        }
        rates = {name: round(1 / time, 4) for name, time in seconds.items()}
        jobs.append(Job(str(number), seconds, rates, dice.choice([0, 0, 1])))
    return jobs


def every_way(jobs, boards, goal):
    """Return the best key over all layouts and all assignments, by trying them."""
    best = None
    ranks = {level: at for at, level in enumerate(sorted({job.priority for job in jobs}))}
    for chosen in product(*(layouts(board.table) for board in boards)):
        instances = [instance for layout in chosen for instance in layout]
        if len(instances) > len(jobs):
            continue
        largest = max(
            room(board.table, layout)[0] for board, layout in zip(boards, chosen, strict=True)
        )
        gone = sum(
            len(set(board.current) - set(layout))
            for board, layout in zip(boards, chosen, strict=True)
        )
        slices = sum(boards[0].table.profile(each.profile).slices for each in instances)
        for some in combinations(range(len(jobs)), len(instances)):
            for order in permutations(some):
                pairs = [(jobs[job], at.profile) for job, at in zip(order, instances, strict=True)]
                if any(name not in job.seconds for job, name in pairs):
                    continue
                worth = sum((len(jobs) + 1) ** ranks[job.priority] for job, _ in pairs)
                if goal == "finish":
                    value = -max((job.seconds[name] for job, name in pairs), default=0.0)
                else:
                    value = round(sum(job.rates[name] for job, name in pairs), 6)
                key = (worth, value, largest, -gone, -slices)
                if best is None or key > best:
                    best = key
    return best


def key_of(found, jobs, boards, goal):
    ranks = {level: at for at, level in enumerate(sorted({job.priority for job in jobs}))}
    placed = [(job, place) for job, place in zip(jobs, found.jobs, strict=True) if place]
    worth = sum((len(jobs) + 1) ** ranks[job.priority] for job, _ in placed)
    value = -found.finish if goal == "finish" else round(found.rate, 6)
    instances = [instance for layout in found.layouts for instance in layout]
    slices = sum(boards[0].table.profile(each.profile).slices for each in instances)
    assert sorted(place for _, place in placed) == sorted(
        (number, each) for number, layout in enumerate(found.layouts) for each in layout
    )
    return (worth, value, found.room, -found.destroyed, -slices)


@pytest.mark.parametrize("part", range(10))
def test_nothing_better_is_found_by_trying_every_way(part):
    dice = random.Random(part)
    for _ in range(SETS // 10):
        gpu, boards, most = dice.choice(
            [("a30-24gb", 1, 4), ("a30-24gb", 2, 3), ("rtx-pro-6000-96gb", 1, 4)]
            + [("a100-40gb", 1, 3)] * 2
        )
        table = TABLES[gpu]
        current = tuple(dice.choice(layouts(table)))
        there = [Board(table, current if number == 0 else ()) for number in range(boards)]
        jobs = some_jobs(dice, table, dice.randint(1, most))
        goal = dice.choice(["finish", "rate"])
        assert key_of(pack(jobs, there, goal), jobs, there, goal) == every_way(jobs, there, goal)


def test_a_job_that_no_instance_holds_stays_out_and_the_others_do_not():
    table = TABLES["a100-40gb"]
    found = pack([Job("huge", {}), Job("small", {"1g.5gb": 1.0})], [Board(table)])
    assert found.jobs[0] is None
    assert found.jobs[1] == (0, Instance("1g.5gb", found.layouts[0][0].start))


def test_ten_thousand_jobs_are_refused_in_one_line():
    with pytest.raises(UserError, match="200"):
        pack([Job("x", {"1g.5gb": 1.0})] * 10_000, [Board(TABLES["a100-40gb"])])
