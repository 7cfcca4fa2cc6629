"""Measured rows of image models and their op tables are whole and agree with the product."""

import csv
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import optables
import pytest
import visionrows
from visionrows import ROWS, VisionRow, family, held_out, held_out_families, kept_out, rows

from trainwright.catalog import catalog
from trainwright.profile import shipped
from trainwright.profile.profile import evaluate

TASKS = ("train", "infer")
TRACER = Path(__file__).parents[2] / "scripts" / "trace_rows.py"


def test_every_row_has_its_table() -> None:
    for task in TASKS:
        known = optables.tables(f"ops-vision-{task}.npz")
        assert {row.key for row in rows() if row.task == task} == set(known)


def test_every_row_names_its_source_and_a_gpu_of_the_catalog() -> None:
    known = set(catalog().ids)
    for row in rows():
        assert row.source.startswith("github.com/huggingface/pytorch-image-models results/")
        assert row.gpu in known, row.id
        assert row.seconds > 0


def test_every_excluded_row_says_why() -> None:
    excluded = _excluded()
    assert all(record["reason"] and record["source"] for record in excluded)
    assert not {record["id"] for record in excluded} & {row.id for row in rows()}


def test_the_files_stay_small() -> None:
    assert sum(path.stat().st_size for path in ROWS.glob("*vision*")) <= 6e6


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("tf_efficientnetv2_s_in21ft1k", "efficientnetv2"),
        ("gluon_seresnext50_32x4d", "resnext"),
        ("halo2botnet50ts_256", "attention-resnet"),
        ("vit_small_r26_s32_224", "vit-hybrid"),
        ("vit_relpos_base_patch16_rpn_224", "vit-relpos"),
        ("deit3_base_patch16_384", "vit"),
        ("levit_conv_128s", "levit"),
        ("ens_adv_inception_resnet_v2", "inception"),
        ("resnetv2_50x1_bitm", "resnetv2"),
    ],
)
def test_a_family_is_of_one_architecture(model: str, expected: str) -> None:
    assert family(model) == expected


def test_rows_have_the_family_of_their_model() -> None:
    assert all(row.family == family(row.model) for row in rows())


def test_attention_is_fused_from_torch_2_on() -> None:
    for row in rows():
        old = row.framework.startswith("torch 1.")
        assert row.key.endswith("/eager" if old else "/flash"), row.id


def test_what_is_kept_out_follows_the_rule() -> None:
    """Over the published rows: what was excluded later, for its table, does not change the list."""
    published = {(row.task, row.id): row.family for row in rows()}
    for record in _excluded():
        if not record["gpu"].startswith("CPU"):
            published[record["task"], record["id"]] = family(record["model"])
    training = Counter(name for (task, _), name in published.items() if task == "train")
    del training["sequencer"]
    others = set(published.values()) - set(training) - {"sequencer"}
    chosen = set(held_out_families(training, others))
    assert chosen == held_out()["family"] & set(visionrows.KINDS)
    assert held_out()["gpu"] >= set(visionrows.HELD_OUT_GPUS)


def test_no_family_is_on_both_sides_and_every_kind_is_on_each() -> None:
    training = [row for row in rows() if row.task == "train"]
    out, used = _families(training, True), _families(training, False)
    assert not out & used
    kinds = set(visionrows.KINDS.values()) - {"unrolled"}
    assert {visionrows.KINDS[name] for name in out} == kinds
    assert {visionrows.KINDS[name] for name in used} == kinds
    share = sum(map(kept_out, training)) / len(training)
    assert 0.25 <= share <= 0.30


def test_tables_have_the_published_number_of_parameters() -> None:
    """Rows round to 0.01 million; a model may have changed a little between versions of timm."""
    for task in TASKS:
        known = optables.tables(f"ops-vision-{task}.npz")
        for row in rows():
            if row.task == task:
                assert known[row.key].parameters == pytest.approx(row.params, rel=1e-3, abs=6e3), (
                    row.model
                )


def test_a_table_is_what_the_product_traces() -> None:
    """ResNet-50 ships; its profile has beside the table what scales the loss: four numbers."""
    profile = shipped.profile("resnet50", "full-fp16-mixed-flash")
    assert profile is not None
    table = optables.tables("ops-vision-train.npz")["resnet50@224/train/fp16-mixed/eager"]
    calls = np.bincount(profile.segments["micro"].ops, minlength=len(profile.ops.name))
    calls[[phase == "data" for phase in profile.ops.phase]] = 0
    for batch in (8, 192):
        totals = {
            name: int(evaluate(getattr(profile.ops, name), batch, 0) @ calls)
            for name in ("flops", "bytes_read", "bytes_written")
        }
        assert totals["flops"] == table.total("flops", batch)
        for name in ("bytes_read", "bytes_written"):
            assert 0 <= totals[name] - table.total(name, batch) <= 16


def test_rows_become_operators_of_a_profile() -> None:
    for table in optables.tables("ops-vision-train.npz").values():
        ops = optables.as_ops(table)
        assert int(evaluate(ops.flops, 7, 0) @ table.count) == table.total("flops", 7)
        assert ops.dims.shape == (len(ops.name), 7, 6)


def test_writing_tables_again_gives_the_same_bytes(tmp_path: Path) -> None:
    stored = ROWS / "ops-vision-train.npz"
    optables.write(tmp_path / "again.npz", optables.read(stored))
    with np.load(stored) as before, np.load(tmp_path / "again.npz") as after:
        assert before.files == after.files
        assert all(np.array_equal(before[name], after[name]) for name in before.files)


def test_a_model_traced_again_gives_its_table(tmp_path: Path) -> None:
    pytest.importorskip("timm")
    key = "lcnet_035@224/train/fp16-mixed/eager"
    file = tmp_path / "again.npz"
    subprocess.run(
        [sys.executable, TRACER, "train", "--file", file, "--keys", key],
        check=True,
        capture_output=True,
        timeout=300,
    )
    again, stored = optables.read(file)[key], optables.tables("ops-vision-train.npz")[key]
    assert (again.name, again.phase, again.dtype) == (stored.name, stored.phase, stored.dtype)
    for name in ("flops", "bytes_read", "bytes_written", "dims", "count"):
        assert np.array_equal(getattr(again, name), getattr(stored, name))


def _excluded() -> list[dict[str, str]]:
    with (ROWS / "excluded-vision.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _families(found: list[VisionRow], out: bool) -> set[str]:
    return {row.family for row in found if kept_out(row) is out}
