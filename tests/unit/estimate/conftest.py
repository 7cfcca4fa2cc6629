"""A small attention model written down by hand, as the tracer would log it.

The module beside the tests, ``handmade``, is imported by bare name.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from handmade import full_settings

from trainwright.catalog import Fact, GpuRecord
from trainwright.explain import Kind, Quantity, Unit
from trainwright.machine.machine import Gpu
from trainwright.messages import Message
from trainwright.profile.profile import SCALE, OpTable, Profile, Segment
from trainwright.profile.trace import ALLOC, BEGIN, COPY_DEAD, END, FREE, PACK, RELEASE, UNPACK
from trainwright.workload import FullSettings

HEADS, KV_HEADS, HEAD_DIM, VOCABULARY = 16, 4, 64, 32_000
HIDDEN = HEADS * HEAD_DIM


class _Writer:
    """Logs of one model; sizes and ops are entered once."""

    def __init__(self) -> None:
        self.sizes: dict[tuple[int, ...], int] = {}
        self.ops: list[tuple[str, str, int, str, tuple[tuple[int, ...], ...]]] = []
        self.category: dict[int, str] = {}
        self.log: list[tuple[int, int, int, int]] = []
        self.calls: list[int] = []
        self.next_id = self.next_holder = 1

    def op(self, name, phase, region=-1, dtype="bfloat16", dims=()):
        row = (name, phase, region, dtype, dims)
        if row not in self.ops:
            self.ops.append(row)
        self.calls.append(self.ops.index(row))
        return len(self.calls) - 1

    def new(self, *, one=0, b=0, bs=0, op=-1, category=None):
        size = (one, b, 0, bs, 0, 0)
        row = self.sizes.setdefault(size, len(self.sizes))
        self.log.append((ALLOC, self.next_id, row, op))
        if category:
            self.category[self.next_id] = category
        self.next_id += 1
        return self.next_id - 1

    def free(self, *storages):
        self.log += [(FREE, storage, 0, 0) for storage in storages]

    def pack(self, storage, block):
        self.log.append((PACK, self.next_holder, storage, block))
        self.next_holder += 1
        return self.next_holder - 1

    def unpack(self, holder):
        self.log += [(UNPACK, holder, 0, 0), (COPY_DEAD, holder, 0, 0), (RELEASE, holder, 0, 0)]

    def mark(self, code, block):
        self.log.append((code, block, 0, 0))

    def segment(self, inputs=()):
        table = np.array(self.log, dtype=np.int32).reshape(-1, 4)
        made = Segment(
            table[:, 0].astype(np.uint8),
            *(table[:, column].copy() for column in (1, 2, 3)),
            np.array(self.calls, dtype=np.int32),
            tuple(inputs),
        )
        self.log, self.calls = [], []
        return made

    def table(self):
        def scaled(rows):
            return np.array(rows, dtype=np.int64).reshape(-1, 6) * SCALE

        dims = np.zeros((len(self.ops), 7, 6), dtype=np.int64)
        for row, op in enumerate(self.ops):
            for place, polynomial in enumerate(op[4]):
                dims[row, place] = np.array(polynomial, dtype=np.int64) * SCALE
        costs = np.zeros((len(self.ops), 6), dtype=np.int64)
        names, phases, regions, dtypes, _ = zip(*self.ops, strict=True)
        return (
            scaled(list(self.sizes)),
            OpTable(names, phases, regions, dtypes, costs, costs, costs, dims),
        )


def _constant(value):
    return (value, 0, 0, 0, 0, 0)


_B, _S = (0, 1, 0, 0, 0, 0), (0, 0, 1, 0, 0, 0)
_ATTENTION = (_B, _constant(HEADS), _S, _S, *map(_constant, (HEAD_DIM, KV_HEADS, 1)))


def toy_profile(blocks: int = 4) -> Profile:
    """Return the profile of ``blocks`` attention layers and a head, fp32 weights."""
    w = _Writer()
    made = w.op("aten.empty.memory_format", "setup", dtype="float32")
    for size in [4 * HIDDEN * HIDDEN] * blocks + [4 * VOCABULARY * HIDDEN]:
        w.new(one=size, op=made, category="parameter")
    segments = {"setup": w.segment()}
    segments["micro"] = _micro_batch(w, blocks, "gradient")
    segments["again"] = _micro_batch(w, blocks, None)

    update = w.op("aten._fused_adamw_.default", "optimizer", dtype="float32")
    for size in [4 * HIDDEN * HIDDEN] * blocks + [4 * VOCABULARY * HIDDEN]:
        for _ in range(2):
            w.new(one=size, op=update, category="optimizer")
    segments["optimizer:adamw"] = w.segment()
    sizes, ops = w.table()
    parameters = blocks * HIDDEN**2 + VOCABULARY * HIDDEN
    return Profile(
        sizes=sizes,
        segments=segments,
        ops=ops,
        category=w.category,
        model={
            "parameters": parameters,
            "trainable": parameters,
            "blocks": blocks,
            "vocabulary": VOCABULARY,
            "hidden": HIDDEN,
            "heads": HEADS,
            "kv_heads": KV_HEADS,
            "head_dim": HEAD_DIM,
        },
        assumptions={},
        kernels={"flash": blocks},
        versions={"torch": "2.13.0"},
        exact=True,
        points=((2, 64),),
    )


def _add_gradient(w: _Writer, size: int, region: int, category: str | None) -> None:
    made = w.new(one=size, op=w.op("aten.mm.default", "backward", region), category=category)
    if category is None:
        w.free(made)


def _micro_batch(w: _Writer, blocks: int, gradient: str | None) -> Segment:
    """Log forward and backward; gradients are kept, or added to those there and freed."""
    tokens = w.new(bs=8, category="input")
    x = w.new(bs=2 * HIDDEN, op=w.op("aten.embedding.default", "forward"))
    saved, inputs = [], []
    for block in range(blocks):
        w.mark(BEGIN, block)
        inputs.append((block, (x,)))
        h1 = w.pack(x, block)
        q = w.new(bs=2 * HIDDEN, op=w.op("aten.mm.default", "forward", block))
        h2 = w.pack(q, block)
        attention = w.op(
            "aten._scaled_dot_product_flash_attention.default", "forward", block, dims=_ATTENTION
        )
        y = w.new(bs=2 * HIDDEN, op=attention)
        lse = w.new(bs=4 * HEADS, op=attention)
        h3, h4 = w.pack(y, block), w.pack(lse, block)
        w.free(q, lse, x)
        w.mark(END, block)
        saved.append((h1, h2, h3, h4))
        x = y
    head = w.op("aten.mm.default", "forward", -2)
    logits = w.new(bs=2 * VOCABULARY, op=head)
    hx = w.pack(x, -1)
    w.free(x)
    loss = w.new(bs=4 * VOCABULARY, op=w.op("aten._log_softmax.default", "loss", -2, "float32"))
    hl = w.pack(loss, -1)
    w.free(logits, loss)

    grad = w.new(
        bs=4 * VOCABULARY, op=w.op("aten._log_softmax_backward_data.default", "backward", -2)
    )
    w.unpack(hl)
    _add_gradient(w, 4 * VOCABULARY * HIDDEN, -2, gradient)
    dx = w.new(bs=2 * HIDDEN, op=w.op("aten.mm.default", "backward", -2))
    w.unpack(hx)
    w.free(grad)
    for block in reversed(range(blocks)):
        backward = w.op(
            "aten._scaled_dot_product_flash_attention_backward.default",
            "backward",
            block,
            dims=_ATTENTION,
        )
        h1, h2, h3, h4 = saved[block]
        dq = w.new(bs=2 * HIDDEN, op=backward)
        dk = w.new(bs=2 * KV_HEADS * HEAD_DIM, op=backward)
        dv = w.new(bs=2 * KV_HEADS * HEAD_DIM, op=backward)
        for holder in (h3, h4, h2):
            w.unpack(holder)
        w.free(dx)
        dx = w.new(bs=2 * HIDDEN, op=w.op("aten.mm.default", "backward", block))
        _add_gradient(w, 4 * HIDDEN * HIDDEN, block, gradient)
        w.unpack(h1)
        w.free(dq, dk, dv)
    w.free(dx, tokens)
    return w.segment(inputs)


@pytest.fixture(scope="session")
def make_toy() -> Callable[[int], Profile]:
    return toy_profile


@pytest.fixture(scope="session")
def toy() -> Profile:
    return toy_profile()


@pytest.fixture(scope="session")
def make_gpu() -> Callable[..., Gpu]:
    def make(gib: float = 24, capability: tuple[int, int] = (8, 9), held_mib: float = 600) -> Gpu:
        record = GpuRecord.model_construct(
            id="test",
            name="Test",
            vendor="NVIDIA",
            segment="consumer",
            architecture="Ada",
            compute_capability=capability,
            memory_bytes=Fact(value=gib * 2**30, source="test", confidence="high"),
        )
        return Gpu(
            record,
            1,
            Quantity(Message.of("machine.total"), gib * 2**30, Unit.BYTES, Kind.QUOTED),
            Quantity(Message.of("machine.held"), held_mib * 2**20, Unit.BYTES, Kind.ASSUMED),
        )

    return make


@pytest.fixture(scope="session")
def make_settings() -> Callable[..., FullSettings]:
    def make(**changes: Any) -> FullSettings:
        usual: dict[str, Any] = {
            "precision": "bf16-mixed",
            "kv_cache": "bf16",
            "micro_batch": 2,
            "num_workers": 0,
            "persistent_workers": False,
        }
        return full_settings(**(usual | changes))

    return make
