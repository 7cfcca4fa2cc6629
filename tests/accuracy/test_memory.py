"""Predicted against measured peaks of public runs; ``make accuracy`` prints the tables.

``python tests/accuracy/test_memory.py`` writes the summary that later runs are held to.
"""

import json
import sys
from collections.abc import Callable, Iterable
from statistics import median

import baselines
import packed
from predict import Prediction, predict, predictions, profile_of
from rows import HERE, in_transformers, profile_name, rows, table

from trainwright.catalog import catalog

SUMMARY = HERE / "summary.json"
GOALS: dict[str, tuple[str, Callable[[float], bool]]] = {
    "rows": ("at least 80", lambda value: value >= 80),
    "families": ("at least 6", lambda value: value >= 6),
    "median": ("at most 6 %", lambda value: value <= 0.06),
    "p90": ("at most 15 %", lambda value: value <= 0.15),
    "under": ("3 to 8 %", lambda value: 0.03 <= value <= 0.08),
    "ratio": ("at most 1.20", lambda value: value <= 1.20),
}
WORSE = ("median", "p90", "under", "ratio")
ROUNDING = 0.0005
"""How much a figure may get worse: as much as the committed ones are rounded."""
CLASSIFIERS = {"torchao/vit-g/adam": 1000 * (1536 + 1), "torchao/vit-g/adam-amp": 1000 * (1536 + 1)}
"""Of weights that timm publishes without one: they are trained with one of ImageNet's classes."""


def test_rule_leaves_enough_rows_and_names_the_others():
    used = [row for row in rows() if row.measured]
    assert len({row.id for row in rows()}) == len(rows())
    assert len(used) >= 80
    assert len({row.family for row in used}) >= 6
    assert not [row for row in table("excluded.csv") if len(row["reason"]) < 8]


def test_every_row_has_its_trace():
    assert not [row.id for row in rows() if not packed.has(profile_name(row))]


def test_models_are_the_published_ones():
    for row in rows():
        facts = profile_of(row).model
        own = facts.get("base_parameters", facts["parameters"])
        if row.task == "lora" and "base_parameters" not in facts:
            own -= facts["trainable"]
        # litgpt never ties the head to the embedding; published without it where they are tied.
        head = facts.get("head_parameters", 0) + CLASSIFIERS.get(row.id, 0)
        expected = (row.params, row.params + head)
        # StableLM's card counts 0.03 % more than its config.json has.
        assert min(abs(own / count - 1) for count in expected) < 5e-4, row.id
        if row.trainable:
            assert facts["trainable"] == row.trainable, row.id


def test_no_figure_is_worse_than_committed():
    committed = json.loads(SUMMARY.read_text(encoding="utf-8"))
    print(report())
    now = summary()
    for name, figures in committed.items():
        for key in WORSE:
            assert now[name][key] <= figures[key] + ROUNDING, f"{name}: {key}"
        assert now[name]["rows"] >= figures["rows"], name
    assert not [p.row.id for p in predictions() if not p.row.measured and p.fits]
    for p in predictions():
        assert sum(term.value for term in p.estimate.terms) == p.estimate.allocated_peak.value


def test_the_spread_holds_on_sources_that_do_not_set_it():
    assert 0.03 <= kept_out(lambda p: p.row.source)[0] <= 0.08


# Figures


def measured() -> list[Prediction]:
    return [prediction for prediction in predictions() if prediction.row.measured]


def figures(some: Iterable[Prediction]) -> dict[str, float]:
    """Return the figures of some predictions; shares and ratios, not percent."""
    chosen = list(some)
    errors = [abs(prediction.error) for prediction in chosen]
    return {
        "rows": len(chosen),
        "families": len({prediction.row.family for prediction in chosen}),
        "median": round(median(errors), 4),
        "p90": round(quantile(errors, 0.9), 4),
        "bias": round(median(prediction.error for prediction in chosen), 4),
        "under": round(sum(prediction.ratio < 1 for prediction in chosen) / len(chosen), 4),
        "ratio": round(median(prediction.ratio for prediction in chosen), 4),
    }


def kept_out(key: Callable[[Prediction], str]) -> tuple[float, float]:
    """Return the share of rows above a p95 that the rows of other kinds set, and its median factor.

    Split conformal: each kind in turn is left out, and the 95th percentile of measured over
    predicted of all others stands for its p95.
    """
    over, factors = 0, []
    for kind in {key(p) for p in measured()}:
        others = [1 / (1 + p.error) for p in measured() if key(p) != kind]
        factor = quantile(others, 0.95)
        own = [p for p in measured() if key(p) == kind]
        over += sum(1 / (1 + p.error) > factor for p in own)
        factors += [factor] * len(own)
    return over / len(measured()), median(factors)


def quantile(values: list[float], share: float) -> float:
    """Return the smallest value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(-(-int(share * 1000) * len(ordered) // 1000) - 1, 0)]


def summary() -> dict[str, dict[str, float]]:
    """Return the figures of all rows, of each family, of each task and of each source."""
    groups = {"all": measured()}
    for key in ("family", "task", "source"):
        for prediction in measured():
            groups.setdefault(f"{key}: {getattr(prediction.row, key)}", []).append(prediction)
    return {name: figures(group) for name, group in groups.items()}


# Tables


def report() -> str:
    """Return the tables that ``make accuracy`` prints."""
    parts = (
        row_table(),
        fit_table(),
        summary_table(),
        goal_lines(),
        kept_out_lines(),
        baseline_table(),
        other_stack_table(),
        left_out(),
    )
    return "\n\n".join(("", *parts, ""))


def row_table() -> str:
    lines = [
        f"{'row':<50} {'metric':<9} {'measured':>9} {'predicted':>9} {'error':>7} {'p95':>7}  GB"
    ]
    for p in measured():
        mark = "!" if p.ratio < 1 else " "
        lines.append(
            f"{p.row.id:<50} {p.row.metric:<9} {p.row.measured_bytes / 1e9:9.2f} "
            f"{p.predicted / 1e9:9.2f} {p.error:+7.1%} {p.p95 / 1e9:7.2f}{mark}"
        )
    return "\n".join(lines)


def fit_table() -> str:
    lines = ["Runs that ended out of memory"]
    for p in predictions():
        if not p.row.measured:
            said = "FITS, which is wrong" if p.fits else "does not fit"
            lines.append(f"{p.row.id:<50} {p.row.gpu:<16} {p.predicted / 1e9:9.2f} GB: {said}")
    return "\n".join(lines)


def summary_table() -> str:
    lines = [
        f"{'group':<50} {'rows':>4} {'median':>7} {'p90':>7} {'bias':>7} {'under':>6} {'ratio':>6}"
    ]
    for name, found in summary().items():
        lines.append(
            f"{name:<50} {found['rows']:>4} {found['median']:>7.1%} {found['p90']:>7.1%} "
            f"{found['bias']:>+7.1%} {found['under']:>6.1%} {found['ratio']:>6.3f}"
        )
    return "\n".join(lines)


def goal_lines() -> str:
    found = figures(measured())
    return "\n".join(
        f"{key:<9} {found[key]:>8.4g}  {goal:<13} {'met' if holds(found[key]) else 'MISSED'}"
        for key, (goal, holds) in GOALS.items()
    )


def kept_out_lines() -> str:
    keys: dict[str, Callable[[Prediction], str]] = {
        "source": lambda p: p.row.source,
        "family of GPUs": lambda p: catalog().record(p.row.gpu).architecture,
        "family of models": lambda p: p.row.family,
    }
    found = {name: kept_out(key) for name, key in keys.items()}
    return "\n".join(
        f"p95 set without the row's own {name}: measured above it in {share:.1%}, "
        f"median factor {factor:.3f}"
        for name, (share, factor) in found.items()
    )


def baseline_table() -> str:
    """Median and 90th percentile of the error, and the median of each task."""
    tasks = ("full", "lora", "qlora", "infer")
    heads = "".join(f"{task:>9}" for task in tasks)
    lines = ["The same rows by other estimators", f"{'':<16} rows   median      p90 {heads}"]
    for name, estimator in (("Trainwright", None), *baselines.ALL.items()):
        errors: dict[str, list[float]] = {}
        for p in measured():
            value = estimator(p.row, p.profile.model) if estimator else p.predicted
            if value is not None:
                errors.setdefault(p.row.task, []).append(abs(value / p.row.measured_bytes - 1))
        every = [error for of_task in errors.values() for error in of_task]
        each = "".join(
            f"{median(errors[task]):>9.1%}" if task in errors else f"{'n/a':>9}" for task in tasks
        )
        lines.append(
            f"{name:<16} {len(every):>4} {median(every):>8.1%} {quantile(every, 0.9):>8.1%} {each}"
        )
    return "\n".join(lines)


def other_stack_table() -> str:
    """Runs of litgpt against plans for transformers: what the stack alone changes."""
    lines = ["Runs of litgpt, planned as runs of today's transformers and PEFT"]
    answers = [predict(row) for row in in_transformers() if packed.has(profile_name(row))]
    lines += [
        f"{p.row.id:<50} {p.row.measured_bytes / 1e9:9.2f} {p.predicted / 1e9:9.2f} {p.error:+7.1%}"
        for p in answers
    ]
    errors = [abs(p.error) for p in answers]
    lines.append(f"median {median(errors):.1%}, p90 {quantile(errors, 0.9):.1%}")
    return "\n".join(lines)


def left_out() -> str:
    lines = (
        f"{row['id']} {row['model'][:40]:<40} {row['task'][:24]:<24} {row['reason']}"
        for row in table("excluded.csv")
    )
    return "\n".join(("Rows left out", *lines))


if __name__ == "__main__":
    sys.stdout.write(report())
    SUMMARY.write_text(json.dumps(summary(), indent=1) + "\n", encoding="utf-8")
