"""Times of serving against published ones, by source; GPUs that the fit has not seen apart.

Beside it stands the rule of thumb of local inference: bytes of the weights over the bandwidth for
each generated token, 2 · weights · tokens over the peak for a prompt.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from math import log
from pathlib import Path
from statistics import median
from typing import Any

from serving_rows import Row, architecture, compared, model_of, predicted, rows, split

from trainwright.catalog import find_gpu
from trainwright.estimate.serving.serving_pass import calibration

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))


def rule_of_thumb(row: Row) -> float:
    """Seconds by bandwidth and peak of the data sheet alone."""
    model = model_of(row)
    known = model.matrices
    token = (known.dense_bytes + known.head_bytes + known.routed_bytes) / model.rates.bandwidth
    weights = known.dense + known.head + known.routed
    each = 2 * weights / (model.rates.packed_peak or float("inf"))
    if row.kind == "layers":
        return max(token, row.requests * each) / known.layers
    if row.kind == "tokens":
        return max(token, row.requests * each)
    return row.requests * row.prompt * each + max(row.new - 1, 0) * token


def off(row: Row, of: Callable[[Row], float] = predicted) -> float:
    return abs(of(row) / row.seconds - 1)


def p90(errors: Iterable[float]) -> float:
    ordered = sorted(errors)
    return ordered[min(int(0.9 * len(ordered)), len(ordered) - 1)]


def within(row: Row) -> bool:
    factor = calibration().factor(find_gpu(row.gpu).record.vendor)
    return abs(log(predicted(row) / row.seconds)) <= log(factor)


SEEN = [row for row in compared() if not row.held_out]
UNSEEN = [row for row in compared() if row.held_out]


def test_every_row_names_its_source_and_every_exclusion_its_reason() -> None:
    assert all(row.source for row in rows())
    assert sum(bool(row.excluded) for row in rows()) < len(rows()) / 5
    assert len({row.publisher for row in compared()}) >= 8
    assert len({row.gpu for row in compared()}) >= 20


def test_errors_are_printed_by_source(capsys: Any) -> None:
    tables = {"on GPUs of the fit": SEEN, "on GPUs kept out": UNSEEN}
    with capsys.disabled():
        for title, chosen in tables.items():
            by: dict[str, list[Row]] = defaultdict(list)
            for row in chosen:
                by[row.publisher].append(row)
            print(f"\n\nServing time {title}: rows, median, 90th percentile; rule of thumb")
            for name, group in [*sorted(by.items()), ("all", chosen)]:
                errors = [off(row) for row in group]
                thumb = [off(row, rule_of_thumb) for row in group]
                print(
                    f"  {name:46} {len(group):4} {median(errors):7.1%} {p90(errors):7.1%}"
                    f"   {median(thumb):7.1%} {p90(thumb):7.1%}"
                )
            covered = sum(map(within, chosen)) / len(chosen)
            print(f"  within the 90 % interval: {covered:.1%}")
        left = sum(bool(row.excluded) for row in rows())
        print(f"  left out by the written rule, with the reason in its row: {left}")


def test_medians_hold() -> None:
    assert median(map(off, SEEN)) <= 0.08
    h20 = [off(row) for row in UNSEEN if row.gpu == "h20-96gb"]
    others = [off(row) for row in UNSEEN if row.gpu != "h20-96gb"]
    assert median(others) <= 0.14
    assert median(h20) <= 0.25


def test_layers_split_over_gpus_take_what_was_measured(capsys: Any) -> None:
    """Llama 2 70B and Qwen2.5 on two and four A100 and H100; one publisher is fitted on."""
    fitted = [row for row in split() if row.publisher == "QwenLM/Qwen2.5"]
    others = [row for row in split() if row not in fitted]
    with capsys.disabled():
        print()
        for title, chosen in (("of the sum's fit", fitted), ("kept out", others)):
            errors = list(map(off, chosen))
            print(
                f"  tensor parallelism {title}: {len(chosen)} rows, median {median(errors):.1%},"
                f" 90th percentile {p90(errors):.1%}"
            )
    assert median(map(off, fitted)) <= 0.05
    assert median(map(off, others)) <= 0.08
    assert sum(map(within, others)) >= 0.9 * len(others)


def test_rule_of_thumb_is_beaten() -> None:
    for chosen in (SEEN, UNSEEN):
        assert median(map(off, chosen)) < 0.7 * median(off(row, rule_of_thumb) for row in chosen)


def test_more_requests_at_once_are_ranked_as_measured() -> None:
    """TurboMind on an A100: 1, 16, 32 and 64 requests, by tokens a second of all."""
    chosen = [row for row in SEEN if row.publisher == "InternLM/lmdeploy" and row.kind == "round"]
    ladders: dict[tuple[str, int, int], list[Row]] = defaultdict(list)
    for row in chosen:
        ladders[row.config, row.prompt, row.new].append(row)
    long = [ladder for ladder in ladders.values() if len(ladder) >= 3]
    assert len(long) >= 6
    for ladder in long:
        measured = sorted(ladder, key=lambda row: row.requests / row.seconds)
        assert sorted(ladder, key=lambda row: row.requests / predicted(row)) == measured


def test_experts_that_nobody_asks_are_not_read() -> None:
    """Qwen 3 30B-A3B generates on an H20 far faster than the dense 32B: 6.6 times, measured."""
    pair = {
        row.config: row
        for row in UNSEEN
        if row.prompt == 1 and row.weights == "none" and row.config.startswith("qwen-3-3")
    }
    sparse, dense = pair["qwen-3-30b-a3b"], pair["qwen-3-32b"]
    assert dense.seconds > 6 * sparse.seconds
    assert predicted(dense) > 3 * predicted(sparse)


def test_shipped_constants_are_the_fitted_ones() -> None:
    import fit_serving

    document = json.loads(fit_serving.FILE.read_text(encoding="utf-8"))
    assert fit_serving.improvable(document) == []


def test_architectures_are_the_ones_of_the_rows() -> None:
    for name in {row.config for row in compared()}:
        model, shape = architecture(name)
        assert model.layers == len(shape.layers)
