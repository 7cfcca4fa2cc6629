"""Serving with transformers against published rates: what the CPU launches is most of it.

Rows in 16 bits, whose profiles ship; those of NF4 and int8 would have to be traced, and stand in
``rows/serving.md``.
"""

from collections import defaultdict
from statistics import median
from typing import Any

from serving_rows import Row, rows

from trainwright.explain import Quantity
from trainwright.plan.evaluate import Facts, evaluate, resolve
from trainwright.plan.schema import Plan

MEASURED = [row for row in rows() if row.engine == "transformers"]
ANSWERED = [row for row in MEASURED if row.weights == "none" and row.precision == "bf16"]


def asked(row: Row) -> Quantity:
    """Return the time of a round, or the rate of a request where only generating was timed."""
    shape = {"prompt_tokens": row.prompt, "new_tokens": row.new, "concurrent": row.requests}
    plan = Plan.model_validate(
        {
            "model": {"preset": row.config},
            "workload": {"task": "infer", "inputs": shape},
            "machine": {"gpus": [{"id": row.gpu}]},
            "settings": {"precision": row.precision, "engine": "transformers"},
        }
    )
    facts = resolve(plan)
    assert isinstance(facts, Facts), row.config
    time = evaluate(plan, facts).time
    found = time.step_seconds
    if row.kind == "decode":
        assert time.serving is not None
        found = time.serving.per_request
    assert found is not None
    return found


def test_rates_of_transformers(capsys: Any) -> None:
    by: dict[tuple[bool, str], list[tuple[float, bool]]] = defaultdict(list)
    for row in ANSWERED:
        found = asked(row)
        measured = row.new / row.seconds if row.kind == "decode" else row.seconds
        assert found.interval is not None
        within = found.interval.low <= measured <= found.interval.high
        by[row.held_out, row.gpu].append((abs(found.value / measured - 1), within))
    with capsys.disabled():
        print("\n\nServing with transformers: rows, median, worst, within the interval")
        for (held_out, gpu), found_ in sorted(by.items()):
            errors = [error for error, _ in found_]
            share = sum(within for _, within in found_) / len(found_)
            where = "kept out" if held_out else "fit"
            line = f"{len(errors):3} {median(errors):7.1%} {max(errors):7.1%} {share:7.1%}"
            print(f"  {gpu:16} {where:8} {line}")
    all_ = [one for group in by.values() for one in group]
    assert sum(within for _, within in all_) >= 0.9 * len(all_)
    assert median(error for error, _ in by[False, "a100-80gb-sxm"]) < 0.15
    assert median(error for error, _ in by[True, "h100-80gb-sxm"]) < 0.15
