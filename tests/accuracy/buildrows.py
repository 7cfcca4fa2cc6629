"""Plans and budgets with what an expert requires and refuses, written before the search ran.

Sources of what experts ask: Tim Dettmers, "A full hardware guide to deep learning"; Puget Systems,
"Hardware recommendations for machine learning"; Intel 613768 (power supplies). Sums from which a
rule counts are assumed.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from trainwright.build import Builds, Candidate, Request, money, search
from trainwright.build.offers import GONE, STILL_MADE
from trainwright.build.sizing import dataset_bytes
from trainwright.build.wished import wishes_of
from trainwright.plan.file import validated

TODAY = date(2026, 11, 29)
GIB = 1 << 30
WON = 1400.0
"""KRW in a USD, to compare sums; assumed."""


@dataclass(frozen=True, slots=True)
class Row:
    """A plan, money, and the words of what its first choice must and must not be."""

    name: str
    preset: str
    workload: Mapping[str, Any]
    budget: str
    requires: tuple[str, ...]
    wishes: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)

    def answer(self) -> Builds:
        """Return what the search answers."""
        document = {
            "trainwright": 1,
            "name": self.name,
            "model": {"preset": self.preset},
            "workload": dict(self.workload),
            "machine": {"gpus": [{"id": "rtx-4090"}]},
            "settings": dict(self.settings),
            "limits": {"budget": self.budget, "wishes": dict(self.wishes)},
        }
        plan = validated(document, str)
        return search(Request(plan, money(self.budget), wishes_of(plan), today=TODAY))


def _gib(one: Candidate) -> float:
    return sum(kit.gib * count for kit, count in one.build.memory)


def _card_gib(one: Candidate) -> float:
    """Return the memory of one card as it is sold: 24 for a card that shows 23.6."""
    return round(one.build.gpus[0].record.memory_bytes.value / GIB)


def _dollars(one: Candidate, amount: float | None) -> float:
    return (amount or 0.0) / (WON if one.total.currency == "KRW" else 1.0)


def _cost_of(one: Candidate, kind: str) -> float:
    return sum(
        _dollars(one, part.price.expected) * (part.count - part.owned)
        for part in one.parts
        if part.kind == kind and part.price is not None
    )


def _cards_cost(one: Candidate) -> float:
    return _cost_of(one, "gpu")


def _buys_used(one: Candidate, kind: str) -> bool:
    return any(part.kind == kind and part.used for part in one.parts)


def _owns_cards(one: Candidate) -> bool:
    return any(part.kind == "gpu" and part.owned for part in one.parts)


def _holds_data(one: Candidate) -> bool:
    wanted = dataset_bytes(one.plan) or 0.0
    return sum(drive.capacity_gb or 0.0 for drive in one.build.drives) * 1e9 >= wanted


def _boots_apart(one: Candidate) -> bool:
    """Return whether data of more than 2 TB leave a drive to the system."""
    return (dataset_bytes(one.plan) or 0.0) < 2e12 or len(
        {drive.id for drive in one.build.drives}
    ) > 1


def _spends(found: Builds, one: Candidate) -> bool:
    """Return whether half of the money is spent."""
    return found.budget is None or (one.total.expected or 0.0) >= found.budget.amount / 2


def _latest(one: Candidate) -> float:
    """Return the seconds that 95 of 100 runs keep, where anything is known of their spread."""
    time = one.time
    if time is None:
        return math.inf
    return time.value if time.interval is None else time.interval.high


Test = Callable[[Builds, Candidate], bool]

REFUSED: dict[str, Test] = {
    "costs more than the budget": lambda found, one: (
        found.budget is not None and (one.total.expected or 0.0) > found.budget.amount
    ),
    "breaks a rule": lambda _, one: any(check.verdict == "error" for check in one.checks),
    "has a rule that cannot be checked": lambda _, one: bool(one.unknown),
    "sells a card as new that shops no longer have": lambda _, one: any(
        part.price is not None
        and part.price.kind in ("assumed", "msrp")
        and (record := one.build.gpus[0].record).id not in STILL_MADE
        and GONE.get(record.architecture, date.max) <= TODAY
        for part in one.parts
        if part.kind == "gpu" and not part.owned and "used" not in str(part.price)
    ),
    "holds less memory than the cards": lambda _, one: (
        _gib(one) < one.build.gpu_count * _card_gib(one)
    ),
    "has less than 32 GiB of memory from 1,500 USD on": lambda _, one: (
        _dollars(one, one.total.expected) >= 1500 and _gib(one) < 32
    ),
    "starts from SATA from 1,500 USD on": lambda _, one: (
        _dollars(one, one.total.expected) >= 1500
        and all(drive.interface != "nvme" for drive in one.build.drives)
    ),
    "has no room for the data": lambda _, one: not _holds_data(one),
    "keeps system and terabytes of data on one drive": lambda _, one: not _boots_apart(one),
    "loads the power supply above 80 %": lambda _, one: (
        one.build.psu is not None and one.dc_watts > 0.8 * one.build.psu.watts
    ),
    "has a cooler of unknown or too small rating": lambda _, one: any(
        check.rule == "G7" and check.verdict != "ok" for check in one.checks
    ),
    "puts a card of a pair behind the chipset": lambda _, one: any(
        check.rule == "P7" and check.verdict == "warning" for check in one.checks
    ),
    "puts cards for 3,000 USD on a platform of before 2022": lambda _, one: (
        _cards_cost(one) >= 3000
        and one.build.board is not None
        and one.build.board.socket in ("AM4", "TR4", "SP3", "LGA1200")
        # Four used cards stand on used server boards: ASRock Rack ROMED8-2T, Supermicro H12SSL.
        and not (one.build.gpu_count > 2 and _buys_used(one, "board"))
    ),
    "gives a card less than four cores": lambda _, one: (
        one.build.cpu is not None and one.build.cpu.cores < 4 * one.build.gpu_count
    ),
    "draws more for hours than four fifths of its breaker": lambda _, one: any(
        check.rule == "W11" and check.verdict != "ok" for check in one.checks
    ),
    "has memory that costs more than the cards": lambda _, one: (
        _cost_of(one, "memory") > max(_cards_cost(one), 1000.0) and not _owns_cards(one)
    ),
    "takes a card whose speed is guessed where another is the surer choice": lambda found, one: any(
        _latest(other) * 1.1 < _latest(one) for other in found.builds
    ),
}

REQUIRED: dict[str, Test] = {
    "an NVIDIA card": lambda _, one: one.build.gpus[0].record.vendor == "NVIDIA",
    "cards of 12 GB": lambda _, one: _card_gib(one) >= 12,
    "cards of 16 GB": lambda _, one: _card_gib(one) >= 16,
    "cards of 24 GB": lambda _, one: _card_gib(one) >= 24,
    "cards of 96 GB": lambda _, one: _card_gib(one) >= 96,
    "one card": lambda _, one: one.build.gpu_count == 1,
    "two cards": lambda _, one: one.build.gpu_count == 2,
    "two cards and more": lambda _, one: one.build.gpu_count >= 2,
    "four cards": lambda _, one: one.build.gpu_count == 4,
    "half of the money spent": _spends,
    "a small board": lambda _, one: (
        one.build.board is not None and one.build.board.form_factor == "mini-itx"
    ),
    "at most 600 W at the wall": lambda _, one: one.wall_watts <= 600,
    "no blower": lambda _, one: one.build.gpus[0].record.cooling != "blower",
    "64 GiB of memory": lambda _, one: _gib(one) >= 64,
    "the owned card": lambda _, one: any(
        part.kind == "gpu" and part.owned == part.count for part in one.parts
    ),
    "the owned power supply": lambda _, one: any(
        part.kind == "psu" and part.owned for part in one.parts
    ),
    "a power limit": lambda _, one: one.build.gpus[0].power_limit_w is not None,
    "the owned cards": lambda _, one: any(
        part.kind == "gpu" and part.owned == part.count == 2 for part in one.parts
    ),
    "the owned board": lambda _, one: any(
        part.kind == "board" and part.owned for part in one.parts
    ),
    "eight cores a card": lambda _, one: (
        one.build.cpu is not None and one.build.cpu.cores >= 8 * one.build.gpu_count
    ),
    "memory with ECC": lambda _, one: all(bool(kit.ecc) for kit, _ in one.build.memory),
    "at most 1,440 W at the wall": lambda _, one: one.wall_watts <= 1440,
    "at most 1,200 W at the wall": lambda _, one: one.wall_watts <= 1200,
    "8 TB on solid-state drives": lambda _, one: (
        sum(d.capacity_gb or 0 for d in one.build.drives if d.interface != "hdd") >= 8000
    ),
    "ten fast cores to decode": lambda _, one: (
        one.build.cpu is not None and one.build.cpu.cores >= 10
    ),
}


def _text(samples: int, batch: int, length: int, task: str, **more: Any) -> dict[str, Any]:
    inputs = {"sequence_length": length}
    return {
        "task": task, "inputs": inputs, "effective_batch": batch, "samples": samples, **more,
    }  # fmt: skip


def _images(samples: int, batch: int, kib: int, epochs: int, layout: str = "files") -> Any:
    data = {"layout": layout, "sample_kib": kib, "decode": "jpeg"}
    return {
        "task": "pretrain", "inputs": {"image_size": 224}, "effective_batch": batch,
        "samples": samples, "epochs": epochs, "dataset": data,
    }  # fmt: skip


_QLORA = _text(52_000, 16, 2048, "qlora", epochs=1)
_LORA = _text(52_000, 64, 2048, "lora", epochs=3)
_FULL = _text(100_000, 128, 4096, "full", epochs=3)
_ALONE = {"prompt_tokens": 1024, "new_tokens": 256, "concurrent": 1}
_MANY = {"prompt_tokens": 1024, "new_tokens": 256, "concurrent": 8}
_Q4 = {"engine": "llama.cpp", "quantization": "q4_k_m"}
_LLAMA = "llama-3.1-8b"

ROWS = (
    Row("QLoRA of 8 B", _LLAMA, _QLORA, "1000 USD", ("an NVIDIA card", "cards of 12 GB")),
    Row("the same, used", _LLAMA, _QLORA, "1000 USD", ("cards of 12 GB",), {"used": True}),
    Row("QLoRA of 8 B, more money", _LLAMA, _QLORA, "3000 USD",
        ("an NVIDIA card", "cards of 16 GB", "half of the money spent")),
    Row("LoRA of 8 B, used", _LLAMA, _LORA, "3000 USD",
        ("an NVIDIA card", "cards of 24 GB", "64 GiB of memory"), {"used": True}),
    Row("LoRA of 8 B, new", _LLAMA, _LORA, "5000 USD",
        ("an NVIDIA card", "cards of 24 GB", "half of the money spent")),
    Row("full training of 8 B", _LLAMA, _FULL, "60000 USD",
        ("two cards and more", "cards of 96 GB", "half of the money spent")),
    Row("full training of 8 B, less money", _LLAMA, _FULL, "25000 USD",
        ("cards of 96 GB", "half of the money spent")),
    Row("QLoRA in Korea", _LLAMA, _QLORA, "4000000 KRW", ("an NVIDIA card", "cards of 16 GB")),
    Row("QLoRA in Korea, little money, used", _LLAMA, _QLORA, "1500000 KRW",
        ("cards of 12 GB",), {"used": True}),
    Row("LoRA in Korea, much money", _LLAMA, _LORA, "20000000 KRW",
        ("an NVIDIA card", "half of the money spent", "64 GiB of memory")),
    Row("8 TB of pictures", "vit-b16", _images(80_000_000, 1024, 100, 5), "8000 USD",
        ("8 TB on solid-state drives", "ten fast cores to decode")),
    Row("pictures, small", "resnet50", _images(1_281_167, 256, 110, 30), "2500 USD",
        ("a small board", "one card"), {"form": "mini-itx"}),
    Row("pictures, quiet", "resnet50", _images(1_281_167, 256, 110, 30), "3000 USD",
        ("at most 600 W at the wall", "no blower"), {"quiet": True}),
    Row("pictures, little money", "resnet50", _images(1_281_167, 256, 110, 90), "1200 USD", ()),
    Row("two cards", _LLAMA, _LORA, "6000 USD",
        ("two cards", "cards of 16 GB", "64 GiB of memory"), {"gpus": 2}),
    Row("four cards", _LLAMA, _LORA, "25000 USD", ("four cards", "64 GiB of memory"), {"gpus": 4}),
    Row("70 B served, used", "llama-3.1-70b", {"task": "infer", "inputs": _ALONE}, "3000 USD",
        ("two cards", "cards of 24 GB"), {"used": True}, _Q4),
    Row("70 B served on one card", "llama-3.1-70b", {"task": "infer", "inputs": _ALONE},
        "9000 USD", ("one card",), {}, _Q4),
    Row("8 B served to eight", _LLAMA, {"task": "infer", "inputs": _MANY}, "2500 USD",
        ("one card", "cards of 16 GB"), {}, {"engine": "vllm"}),
    Row("8 B served in Korea, quiet", _LLAMA, {"task": "infer", "inputs": _ALONE},
        "3000000 KRW", ("one card", "at most 600 W at the wall"), {"quiet": True}, _Q4),
    Row("around an owned 3090", _LLAMA, _QLORA, "1500 USD",
        ("the owned card",), {"owned": ["rtx-3090"], "gpus": 1}),
    Row("with an owned power supply", _LLAMA, _QLORA, "2500 USD",
        ("the owned power supply", "cards of 16 GB"), {"owned": ["corsair-rm1000x-2024"]}),
    Row("GPT-2 from nothing", "gpt2", _text(2_000_000, 512, 1024, "pretrain"), "12000 USD",
        ("an NVIDIA card", "half of the money spent")),
    Row("BERT in Korea", "bert-base", _text(400_000, 32, 128, "full", epochs=3), "2000000 KRW", ()),
    Row("pictures, used, 600 USD", "resnet50", _images(50_000, 64, 110, 30), "600 USD",
        ("an NVIDIA card", "one card"), {"used": True}),
    Row("LoRA of 8 B, quiet, used", _LLAMA, _LORA, "4000 USD",
        ("cards of 24 GB", "at most 600 W at the wall", "a power limit"),
        {"used": True, "quiet": True}),
    Row("LoRA of 8 B, quiet, in Korea", _LLAMA, _LORA, "9000000 KRW",
        ("an NVIDIA card", "at most 600 W at the wall", "half of the money spent"),
        {"quiet": True}),
    Row("two cards on a usual outlet", _LLAMA, _LORA, "10000 USD",
        ("two cards and more", "at most 1,440 W at the wall"),
        {"circuit": "us-120v-15a"}),
    Row("two cards in Japan", _LLAMA, _LORA, "9000 USD",
        ("two cards", "at most 1,200 W at the wall"), {"gpus": 2, "circuit": "jp-100v-15a"}),
    Row("full training of 8 B, 100,000 USD", _LLAMA, _FULL, "100000 USD",
        ("four cards", "cards of 96 GB", "memory with ECC", "eight cores a card")),
    Row("four used cards", _LLAMA, _QLORA, "6000 USD",
        ("four cards", "an NVIDIA card"), {"used": True, "gpus": 4}),
    Row("around two owned 3090", _LLAMA, _LORA, "2500 USD",
        ("the owned cards", "64 GiB of memory"), {"owned": ("2x rtx-3090",)}),
    Row("around an owned platform", _LLAMA, _QLORA, "2000 USD",
        ("the owned board", "cards of 16 GB"),
        {"owned": ("ryzen-9-7950x", "asus-proart-x670e-creator-wifi",
                   "corsair-vengeance-ddr5-6000-cl30-2x32gb", "samsung-990-pro-2tb")}),
    Row("70 B served, used, 2,500 USD", "llama-3.1-70b", {"task": "infer", "inputs": _ALONE},
        "2500 USD", ("two cards", "cards of 24 GB"), {"used": True}, _Q4),
    Row("full training of 1 B, two used cards", "llama-3.2-1b",
        _text(100_000, 64, 2048, "full", epochs=1), "4000 USD",
        ("two cards", "cards of 24 GB"), {"used": True, "gpus": 2}),
)  # fmt: skip


def objections(row: Row, found: Builds) -> list[str]:
    """Return why an expert sends the first choice back; empty where he signs it."""
    if not found.builds:
        return ["there is no computer"]
    first = found.builds[0]
    missing = [f"not {words}" for words in row.requires if not REQUIRED[words](found, first)]
    return missing + [words for words, bad in REFUSED.items() if bad(found, first)]
