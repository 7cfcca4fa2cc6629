"""Small models written down by hand: blocks of products, with costs and lives of storages."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from trainwright.advise.walk import Sources
from trainwright.catalog.query import find_gpu
from trainwright.machine.capacity import capacity, held
from trainwright.machine.machine import Gpu, Machine
from trainwright.messages import UserError
from trainwright.plan.effective import in_force
from trainwright.plan.evaluate import Facts
from trainwright.plan.schema import Plan
from trainwright.profile.profile import SCALE, OpTable, Profile, Segment
from trainwright.profile.trace import ALLOC, BEGIN, COPY_DEAD, END, FREE, PACK, RELEASE, UNPACK
from trainwright.workload import FullSettings, Inputs
from trainwright.workload.defaults import filled

Polynomial = tuple[int, ...]


class _Log:
    """Writes segments; sizes and operator rows are entered once."""

    def __init__(self, itemsize: int) -> None:
        self.itemsize = itemsize
        self.dtype = {2: "bfloat16", 4: "float32"}[itemsize]
        self.sizes: dict[Polynomial, int] = {}
        self.rows: dict[tuple[Any, ...], int] = {}
        self.category: dict[int, str] = {}
        self.log: list[tuple[int, int, int, int]] = []
        self.calls: list[int] = []
        self.ids = self.holders = 0

    def op(self, name: str, phase: str, block: int = -1, dtype: str = "", **costs: Any) -> int:
        names = ("flops", "read", "written", "dims")
        row = (name, phase, block, dtype or self.dtype, *(costs.get(key, ()) for key in names))
        self.calls.append(self.rows.setdefault(row, len(self.rows)))
        return len(self.calls) - 1

    def product(self, m: Polynomial, n: int, k: int, phase: str, block: int) -> int:
        """A matrix product with m rows: a polynomial, since they grow with the tokens."""
        size = self.itemsize
        return self.op(
            "aten.mm.default",
            phase,
            block,
            flops=tuple(2 * n * k * c for c in m),
            read=(size * n * k, *(size * k * c for c in m[1:])),
            written=tuple(size * n * c for c in m),
            dims=((1,), m, (n,), (k,), (size * n * k,)),
        )

    def new(self, size: Polynomial, op: int = -1, category: str = "") -> int:
        self.ids += 1
        self.log.append((ALLOC, self.ids, self.sizes.setdefault(size, len(self.sizes)), op))
        if category:
            self.category[self.ids] = category
        return self.ids

    def free(self, *storages: int) -> None:
        self.log += [(FREE, storage, 0, 0) for storage in storages]

    def pack(self, storage: int, block: int) -> int:
        self.holders += 1
        self.log.append((PACK, self.holders, storage, block))
        return self.holders

    def unpack(self, holder: int) -> None:
        self.log += [(code, holder, 0, 0) for code in (UNPACK, COPY_DEAD, RELEASE)]

    def segment(self, inputs: tuple[tuple[int, tuple[int, ...]], ...] = ()) -> Segment:
        table = np.array(self.log, dtype=np.int32).reshape(-1, 4)
        columns = (table[:, column].copy() for column in (1, 2, 3))
        calls = np.array(self.calls, dtype=np.int32)
        made = Segment(table[:, 0].astype(np.uint8), *columns, calls, inputs)
        self.log, self.calls = [], []
        return made

    def table(self) -> OpTable:
        rows = list(self.rows)
        dims = np.zeros((len(rows), 7, 6), dtype=np.int64)
        for index, row in enumerate(rows):
            for place, polynomial in enumerate(row[7]):
                dims[index, place] = _scaled([polynomial])[0]
        return OpTable(
            *(tuple(row[column] for row in rows) for column in range(4)),
            *(_scaled([row[column] for row in rows]) for column in (4, 5, 6)),
            dims,
        )


def _scaled(polynomials: list[Polynomial]) -> Any:
    rows = [(*polynomial, *(0,) * (6 - len(polynomial))) for polynomial in polynomials]
    return np.array(rows, dtype=np.int64) * SCALE


@dataclass(frozen=True)
class Shape:
    """A model: blocks of two products with a hidden layer between, then a wide head."""

    blocks: int = 12
    hidden: int = 1024
    wide: int = 4096
    head: int = 32_000
    tokens: bool = True
    """Rows are tokens (batch x sequence), else samples."""


def profile_of(shape: Shape = Shape(), itemsize: int = 2, slow: int = 1) -> Profile:
    """The model's profile; ``slow`` repeats every product, as a worse kernel would."""
    log = _Log(itemsize)
    m: Polynomial = (0, 0, 0, 1) if shape.tokens else (0, 1)
    hidden, wide = (tuple(itemsize * n * c for c in m) for n in (shape.hidden, shape.wide))
    logits = tuple(4 * shape.head * c for c in m)
    weights = [(shape.hidden, shape.wide), (shape.wide, shape.hidden)] * shape.blocks
    weights.append((shape.hidden, shape.head))

    def run(n: int, k: int, phase: str, block: int) -> int:
        return [log.product(m, n, k, phase, block) for _ in range(slow)][-1]

    def micro(fresh: bool) -> Segment:
        x = log.new(hidden, category="input")
        saved, inputs = [], []
        for block in range(shape.blocks):
            log.log.append((BEGIN, block, 0, 0))
            inputs.append((block, (x,)))
            first = log.pack(x, block)
            h = log.new(wide, run(shape.wide, shape.hidden, "forward", block))
            second = log.pack(h, block)
            y = log.new(hidden, run(shape.hidden, shape.wide, "forward", block))
            log.free(h, x)
            log.log.append((END, block, 0, 0))
            saved.append((first, second))
            x = y
        last = log.pack(x, -1)
        out = log.new(logits, run(shape.head, shape.hidden, "forward", -2))
        log.free(x)
        held = log.pack(out, -1)
        log.free(out)
        dout = log.new(logits, log.op("aten._log_softmax_backward_data.default", "backward", -2))
        log.unpack(held)
        gradient(shape.hidden, shape.head, -2, fresh)
        dx = log.new(hidden, run(shape.hidden, shape.head, "backward", -2))
        log.unpack(last)
        log.free(dout)
        for block in reversed(range(shape.blocks)):
            first, second = saved[block]
            dh = log.new(wide, run(shape.wide, shape.hidden, "backward", block))
            gradient(shape.wide, shape.hidden, block, fresh)
            log.unpack(second)
            log.free(dx)
            dx = log.new(hidden, run(shape.hidden, shape.wide, "backward", block))
            gradient(shape.hidden, shape.wide, block, fresh)
            log.unpack(first)
            log.free(dh)
        log.free(dx)
        return log.segment(tuple(inputs))

    def gradient(k: int, n: int, block: int, fresh: bool) -> None:
        op = run(n, k, "backward", block)
        made = log.new((4 * n * k,), op, "gradient" if fresh else "")
        if not fresh:
            log.free(made)

    made = log.op("aten.empty.memory_format", "setup", dtype="float32")
    for k, n in weights:
        log.new((4 * n * k,), made, "parameter")
    segments = {"setup": log.segment(), "micro": micro(fresh=True), "again": micro(fresh=False)}
    total = sum(k * n for k, n in weights)
    for name, states in (("adamw", 2), ("adafactor", 0)):
        update = log.op(
            f"aten._fused_{name}_.default",
            "optimizer",
            dtype="float32",
            read=(4 * total * (2 + states),),
            written=(4 * total * (1 + states),),
        )
        for k, n in weights:
            for _ in range(states):
                log.new((4 * n * k,), update, "optimizer")
        segments[f"optimizer:{name}"] = log.segment()
    return Profile(
        sizes=_scaled(list(log.sizes)),
        segments=segments,
        ops=log.table(),
        category=log.category,
        model={
            "parameters": total,
            "trainable": total,
            "blocks": shape.blocks,
            "vocabulary": shape.head,
            "hidden": shape.hidden,
        },
        assumptions={},
        kernels={"flash": shape.blocks},
        versions={"torch": "2.13.0"},
        exact=True,
        points=((2, 64),),
    )


@dataclass(frozen=True)
class Case:
    """A plan with its facts, and where the search finds other structures."""

    plan: Plan
    facts: Facts
    sources: Sources


@pytest.fixture(scope="session")
def make_case() -> Callable[..., Case]:
    return _case


_PROFILES: dict[tuple[Shape, int, int], Profile] = {}


def _profile(shape: Shape, itemsize: int, slow: int) -> Profile:
    key = (shape, itemsize, slow)
    if key not in _PROFILES:
        _PROFILES[key] = profile_of(*key)
    return _PROFILES[key]


def _found(shape: Shape, settings: FullSettings) -> Profile | None:
    if settings.precision == "bf16" or settings.channels_last:
        return None
    itemsize = 4 if settings.precision in ("fp32", "tf32") else 2
    return _profile(shape, itemsize, slow=2 if settings.attention == "eager" else 1)


def _case(
    gpu: str = "rtx-4090",
    like: dict[str, Any] | None = None,
    *,
    batch: int = 48,
    length: int = 512,
    count: int = 1,
    cores: int | None = 16,
    settings: dict[str, Any] | None = None,
    workload: dict[str, Any] | None = None,
) -> Case:
    shape = Shape(**(like or {}))
    job: dict[str, Any] = {"task": "pretrain", "effective_batch": batch}
    plan = Plan.model_validate(
        {
            "trainwright": 1,
            "model": {"preset": "gpt2"},
            "workload": job | (workload or {}),
            "machine": {"gpus": [{"id": gpu, "count": count}]},
            "settings": settings or {},
        }
    )

    def resolve(plan: Plan) -> Facts | None:
        if plan.workload.task not in ("pretrain", "full") or plan.model.preset != "gpt2":
            return None
        try:
            return _facts(plan, shape, length, cores)
        except UserError:  # as choose.STORED does: another GPU has no bf16
            return None

    facts = _facts(plan, shape, length, cores)
    return Case(plan, facts, Sources(lambda _plan, _facts, full: _found(shape, full), resolve))


def _facts(plan: Plan, shape: Shape, length: int, cores: int | None) -> Facts:
    choice = plan.machine.gpus[0]
    record = find_gpu(choice.id).record
    gpu = Gpu(record, choice.count, capacity(record, "linux"), held(record, "linux", None))
    machine = Machine((gpu,), None, cores, None, (), "linux", False)
    full = filled(in_force(plan), plan.workload, record, choice.count, cores)
    tokens = plan.workload.inputs.sequence_length or length
    inputs = Inputs(sequence_length=tokens if shape.tokens else None)
    profile = _found(shape, full)
    assert profile is not None
    return Facts(machine, full, profile, inputs, ())


@pytest.fixture(scope="session")
def evaluated() -> Callable[..., Any]:
    """Evaluate a case at given settings, with no help from the search."""
    from trainwright.plan.evaluate import evaluate

    def at(case: Case, **changed: Any) -> Any:
        settings = case.facts.settings.model_copy(update=changed)
        profile = case.sources.find(case.plan, case.facts, settings)
        assert profile is not None
        return evaluate(case.plan, replace(case.facts, settings=settings, profile=profile))

    return at
