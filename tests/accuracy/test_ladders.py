"""The measured order of published ladders is the predicted one."""

import pytest
from ladders import SAME, Rung, ladders, pairs, predicted, wrong

CHANGED = ("precision", "layout", "batch", "accumulation", "checkpointing", "compiled")


def test_there_are_ladders_for_each_setting_that_the_search_changes() -> None:
    changed = {setting for rungs in ladders().values() for setting in differing(rungs)}
    assert changed >= set(CHANGED)
    assert sum(bool(pairs(rungs)) for rungs in ladders().values()) >= 20


@pytest.mark.parametrize("name", [name for name, rungs in ladders().items() if not rungs[0].cause])
def test_the_measured_order_is_predicted(name: str) -> None:
    assert not [f"{low} before {high}" for low, high in wrong(ladders()[name])]


def test_the_share_that_is_right(capsys: pytest.CaptureFixture[str]) -> None:
    compared = [pair for rungs in ladders().values() for pair in pairs(rungs)]
    missed = [pair for rungs in ladders().values() for pair in wrong(rungs)]
    right = sum(not wrong(rungs) for rungs in ladders().values())
    with capsys.disabled():
        print(f"\nladders, settings more than {SAME:.0%} apart")
        for name, rungs in ladders().items():
            print(line(name, rungs))
        print(f"{right} of {len(ladders())} ladders, {len(compared) - len(missed)} of "
              f"{len(compared)} pairs in the measured order")  # fmt: skip
    assert len(missed) <= 0.05 * len(compared)


def differing(rungs: tuple[Rung, ...]) -> tuple[str, ...]:
    """Return the settings that a ladder changes."""
    return tuple(
        setting for setting in CHANGED if len({getattr(rung, setting) for rung in rungs}) > 1
    )


def line(name: str, rungs: tuple[Rung, ...]) -> str:
    """Return the measured and the predicted gain of each rung on the first, and the verdict."""
    first = rungs[0]
    gains = "  ".join(
        f"{rung.rate / first.rate:.2f}/{predicted(rung) / predicted(first):.2f}"
        for rung in rungs[1:]
    )
    verdict = f"WRONG: {rungs[0].cause}" if wrong(rungs) else "right"
    return f"  {name:48} {'+'.join(differing(rungs)):28} {gains}  {verdict}"
