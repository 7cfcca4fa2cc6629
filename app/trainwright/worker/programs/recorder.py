"""Records what one step does to a device's memory, and the operators that it runs.

Every storage on the simulated device is logged at birth and at death. Tensors that autograd
saves are taken from it by hooks that keep only their description, so that the log shows both
when a storage would die without autograd and when autograd lets go of it; the lives with any
choice of checkpointed blocks follow from that. The codes and the format are stated in
``trainwright/profile/trace.py``.
"""

import gc
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import costs
import known
import torch
from autocast import tensors
from questions import Answers
from segment import (
    ALLOC,
    BEGIN,
    COPY_DEAD,
    END,
    FREE,
    HEAD,
    OUTSIDE,
    PACK,
    RECURRENT,
    RELEASE,
    UNPACK,
    Segment,
    canonical,
    merge_accumulation,
)
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

LASTING = frozenset({"parameter", "reference", "buffer", "cast", "gradient"})
"""Categories of storages that are the same for every batch."""

FORWARDS = frozenset({"forward", "loss", "prefill", "decode", "score"})
"""Stages that run the model forward."""

RESHAPES = tuple(
    f"{name}Backward"
    for name in (
        *("T", "Transpose", "Permute", "View", "UnsafeView", "ReshapeAlias", "Expand"),
        *("Unsqueeze", "Squeeze", "Select", "Slice", "Split", "Unbind", "Clone", "ToCopy"),
    )
)
"""Beginnings of autograd's names for what gives a weight another form or dtype."""

aten = torch.ops.aten


class Holder:
    """What autograd keeps in place of a tensor that it saves."""

    __slots__ = ("block", "known", "meta", "number", "recorder", "region", "storage", "tensor")

    recorder: "Recorder"
    number: int
    storage: int
    region: int
    block: int
    tensor: torch.Tensor | None
    meta: Any
    known: torch.Tensor | None

    def __del__(self) -> None:
        self.recorder.log(RELEASE, self.number)


# Long: torch asks one dispatch mode for all of them.
class Recorder(TorchDispatchMode):
    """A dispatch mode that logs; it holds no tensor, so that it does not prolong a life."""

    def __init__(self, device: str, answers: Answers) -> None:
        super().__init__()
        self.device = device
        self.answers = answers
        self.rows: dict[tuple[Any, ...], int] = {}
        self.category: dict[int, str] = {}
        self.segment = Segment()
        self.stage = "setup"
        self.region = OUTSIDE
        self.block = -1
        self.blocks = 0
        self.calls = 0
        self.follows = False
        """Whether numbers of the batch are known and followed."""
        self.updating = False
        """Whether an optimizer runs within backward."""
        self._lasting: set[int] = set()
        """Storages without a category that are made of nothing but those of ``LASTING``."""
        self._storages: dict[int, tuple[weakref.ref[Any], int, int, int]] = {}
        self._aliases: dict[int, int] = {}
        self._whole: dict[int, weakref.ref[torch.Tensor]] = {}
        """The tensor that a storage was made for."""
        self._next = 1
        self._holders = 0
        self._quiet = False
        self._ops: dict[Any, costs.Facts] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing here is compiled, and the wrapper costs time at every call

    # Segments

    @contextmanager
    def record(self, stage: str) -> Iterator[Segment]:
        """Log into a new segment; it is in canonical order when the block ends.

        Garbage in cycles dies at the end of the segment, not at a moment of its own.
        """
        segment = self.segment = Segment()
        self.stage, self.region, self.block, self.calls = stage, OUTSIDE, -1, 0
        gc.collect()
        gc.freeze()  # collections then look at this segment's objects only
        gc.disable()
        try:
            yield segment
            gc.collect()
        finally:
            gc.enable()
        merge_accumulation(segment, self._aliases, list(self.rows))
        segment.events = canonical(segment.events)
        self.segment = Segment()

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Run operators without logging them or their storages."""
        before, self._quiet = self._quiet, True
        try:
            yield
        finally:
            self._quiet = before

    def log(self, code: int, a: int, b: int = 0, c: int = 0) -> None:
        """Append an event."""
        if not self._quiet:
            self.segment.events.append((code, a, b, c))

    def mark(self) -> tuple[int, int]:
        """Return the state of the numbering, to return to."""
        return self._next, self._holders

    def reset(self, mark: tuple[int, int]) -> None:
        """Number on from a mark: a second run of the same code gets the same numbers."""
        self._next, self._holders = mark
        self._aliases.clear()
        self._lasting.clear()

    # Storages

    def storage_of(self, tensor: torch.Tensor) -> int:
        """Return the id of the tensor's storage on the device, 0 where it has none."""
        return self._root(self._number(tensor))

    def name(self, category: str, found: Iterable[torch.Tensor | None]) -> None:
        """Remember by identity what the storages of these tensors are."""
        for tensor in found:
            if tensor is not None and (storage := self.storage_of(tensor)):
                self.category.setdefault(storage, category)

    def call(self, category: str, storages: Iterable[int]) -> None:
        """Remember what storages are by the numbers that they had when they were alive."""
        for storage in storages:
            self.category.setdefault(self._root(storage), category)

    def living(self) -> set[int]:
        """Return the ids of storages that are alive."""
        return {self._root(entry[1]) for entry in self._storages.values()}

    def adopt(self, tensor: torch.Tensor, storage: int) -> None:
        """Let the tensor's storage, made quietly, go on as the given storage."""
        self._watch(tensor.untyped_storage(), storage, FREE, storage)

    def _number(self, tensor: torch.Tensor) -> int:
        entry = self._storages.get(id(tensor.untyped_storage()))
        return entry[1] if entry else 0

    def _root(self, storage: int) -> int:
        while storage in self._aliases:
            storage = self._aliases[storage]
        return storage

    def _track(self, tensor: Any, op: int) -> None:
        if not isinstance(tensor, FakeTensor) or tensor.fake_device.type != self.device:
            return
        storage = tensor.untyped_storage()
        size = storage.nbytes()
        entry = self._storages.get(id(storage))
        if entry is not None and entry[0]() is storage:
            if entry[2] == size:
                return
            self.log(FREE, entry[1])  # resized in place: another block of memory
        if size == 0:
            return
        number, self._next = self._next, self._next + 1
        self._whole[number] = weakref.ref(tensor)
        self._watch(storage, number, FREE, number)
        self.log(ALLOC, number, size, op)

    def _watch(self, storage: Any, number: int, code: int, operand: int) -> None:
        key = id(storage)
        storages, log = self._storages, self.log

        def dead(reference: Any) -> None:
            entry = storages.get(key)
            if entry is not None and entry[0] is reference:
                del storages[key]
                log(code, operand)

        storages[key] = (weakref.ref(storage, dead), number, storage.nbytes(), code)

    # Saved tensors

    def saved(self) -> Any:
        """Return the context in which autograd saves holders instead of tensors."""
        return torch.autograd.graph.saved_tensors_hooks(self._pack, self._unpack)

    def _pack(self, tensor: torch.Tensor) -> Holder:
        holder = Holder()
        self._holders += 1
        holder.recorder, holder.number = self, self._holders
        holder.block, holder.region = self.block, self.region
        holder.storage = self.storage_of(tensor)
        holder.known = known.value(tensor)
        lasting = self.category.get(holder.storage) in ("parameter", "buffer")
        if lasting or not holder.storage or (tensor.is_leaf and tensor.requires_grad):
            holder.tensor, holder.storage = tensor, 0
        else:
            holder.tensor = None
            holder.meta = (
                tuple(tensor.size()),
                tuple(tensor.stride()),
                tensor.storage_offset(),
                tensor.dtype,
                tensor.untyped_storage().nbytes(),
            )
        self.log(PACK, holder.number, holder.storage, holder.block)
        return holder

    def _unpack(self, holder: Holder) -> torch.Tensor:
        self.log(UNPACK, holder.number)
        self.region = holder.region
        if holder.tensor is not None:
            return holder.tensor
        size, stride, offset, dtype, length = holder.meta
        with self.quiet(), torch.no_grad():
            copy = torch.empty_strided(size, stride, dtype=dtype, device=self.device)
            if offset or copy.untyped_storage().nbytes() != length:
                base = torch.empty(length, dtype=torch.uint8, device=self.device)
                copy = torch.as_strided(base.view(dtype), size, stride, offset)
        if holder.known is not None:
            known.note(copy, holder.known)
        self._watch(copy.untyped_storage(), holder.storage, COPY_DEAD, holder.number)
        return copy

    # Blocks

    def watch(
        self, blocks: list[nn.Module], root: nn.Module, reference: nn.Module | None = None
    ) -> None:
        """Mark the blocks' forward passes, in the order of their calls, and the head.

        A reference, or the same model as one, runs within the loss: it has a head of its own, and
        keeps nothing that checkpointing could drop.
        """
        self.blocks = len(blocks)

        def apart() -> bool:
            return torch._C._current_graph_task_id() >= 0 or self.stage == "loss"

        def enter(module: nn.Module, args: Any) -> None:
            self.region = OUTSIDE

        def begin(module: nn.Module, args: Any, kwargs: Any) -> None:
            if apart():
                return
            self.block = self.region = self.calls
            self.calls += 1
            found = [self.storage_of(tensor) for tensor in tensors((args, kwargs))]
            self.segment.inputs[self.block] = sorted({number for number in found if number})
            self.log(BEGIN, self.block)

        def end(module: nn.Module, args: Any, result: Any) -> None:
            if apart():
                return
            self.log(END, self.block)
            self.block = -1
            self.region = HEAD if self.calls >= self.blocks else OUTSIDE

        def output(module: nn.Module, args: Any, result: Any) -> None:
            if self.stage == "loss":
                self.region = HEAD
                return
            self.name("output", list(tensors(dict(result) if hasattr(result, "keys") else result)))
            if self.stage == "forward" and torch.is_grad_enabled():
                self.stage, self.region = "loss", HEAD

        for block in blocks:
            block.register_forward_pre_hook(begin, with_kwargs=True)
            block.register_forward_hook(end)
        for whole in (root,) if reference is None else (root, reference):
            whole.register_forward_pre_hook(enter)
            whole.register_forward_hook(output)

    def watch_recurrent(self, layers: list[nn.Module]) -> None:
        """Mark what recurrent layers do, step by step, outside the blocks."""
        regions: list[int] = []

        def begin(module: nn.Module, args: Any) -> None:
            regions.append(self.region)
            if self.region in (OUTSIDE, HEAD):
                self.region = RECURRENT

        def end(module: nn.Module, args: Any, result: Any) -> None:
            self.region = regions.pop()

        for layer in layers:
            layer.register_forward_pre_hook(begin)
            layer.register_forward_hook(end)

    # Operators

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run the operator on fakes and log what it makes."""
        kwargs = kwargs or {}
        if self._quiet:
            return func(*args, **kwargs)
        facts = self._ops.get(func)
        if facts is None:
            facts = self._ops[func] = costs.describe(func)
        real = known.follow(func, args, kwargs) if self.follows else None
        if facts.passes:
            out = func(*args, **kwargs)
            if real is not None:
                known.note(out, real)
            return out
        answered, out = known.made(func, args, real)
        if answered:
            pass
        elif facts.asks:
            args = self.answers.indices(func, args, self)
            answered, out = self.answers.result(func, args, kwargs, self.stage)
            if not answered:
                out = func(*args, **kwargs)
        elif func is aten._to_copy.default:
            out = known.copied(args[0], kwargs)
        else:
            out = func(*args, **kwargs)
        if isinstance(out, FakeTensor) and not out.ndim:
            self.answers.remember(func, out)
        if real is not None:
            known.note(out, real)
        given, made = list(tensors((args, kwargs))), list(tensors(out))
        number = -1
        lasts = self._result_lasts(facts, given, made)
        if not facts.allocates and any(t.device.type == self.device for t in (*made, *given)):
            number = len(self.segment.ops)
            self._note(facts, args, kwargs, out, given, made, lasts)
        for tensor in made:
            self._track(tensor, number)
        if lasts:
            self._lasting.update(map(self._number, made))
        if func is aten._to_copy.default and self.stage != "setup":
            self._name_cast(args[0], made)
        return out

    def _note(
        self,
        facts: costs.Facts,
        args: Any,
        kwargs: Any,
        out: Any,
        given: Any,
        made: Any,
        lasts: bool,
    ) -> None:
        def lasting(tensor: torch.Tensor) -> bool:
            return (lasts and any(tensor is one for one in made)) or self._lasts(tensor)

        read, wrote = costs.traffic(facts, args, kwargs, given, made)
        row = (
            facts.name,
            self._phase(),
            self.region,
            costs.dtype(given, made),
            costs.flops(facts, args, kwargs, out),
            read,
            wrote,
            costs.dims(facts, args, kwargs, out, given, made, lasting),
        )
        self.segment.ops.append(self.rows.setdefault(row, len(self.rows)))
        first = args[0] if args and isinstance(args[0], torch.Tensor) else None
        number = 0 if first is None else self._number(first)
        self.segment.first.append(number)
        whole = self._whole.get(number)
        self.segment.viewed.append(whole is not None and whole() is not first)

    def _lasts(self, tensor: torch.Tensor) -> bool:
        """Return whether the tensor has the same size for every batch, and is not expanded."""
        if self.updating or self.stage in ("clip", "optimizer"):
            return True
        number = self._number(tensor)
        if number not in self._lasting and self.category.get(self._root(number)) not in LASTING:
            return False
        pairs = zip(tensor.shape, tensor.stride(), strict=True)
        return all(stride or size == 1 for size, stride in pairs)

    def _result_lasts(self, facts: costs.Facts, given: Any, made: Any) -> bool:
        """Return whether what an operator makes has the same size for every batch."""
        if self.stage not in FORWARDS or not made or facts.op in costs.REPEATS:
            return False
        if given and all(map(self._lasts, given)):
            return True
        weighs = facts.op in costs.MULTIPLIES and self._phase() == "backward"
        return weighs and not any(map(self._lasts, given)) and _is_of_weight(made[0])

    def _name_cast(self, source: torch.Tensor, made: Iterable[torch.Tensor]) -> None:
        """Remember that a tensor is a copy of a parameter in another dtype, as autocast makes."""
        if self.category.get(self.storage_of(source)) == "parameter":
            self.name("cast", made)

    def _phase(self) -> str:
        if torch._C._current_graph_task_id() < 0:
            return self.stage
        if self.updating:
            return "optimizer"
        # Autograd runs without grad mode; an operator under it replays a checkpoint.
        return "recompute" if torch.is_grad_enabled() else "backward"


def _is_of_weight(gradient: torch.Tensor) -> bool:
    """Return whether the product that autograd forms now is the gradient of a weight.

    It is where an operand of the product in forward was a weight, but for its form and dtype.
    """
    node: Any = torch._C._current_autograd_node()
    for operand, _ in node.next_functions if node is not None else ():
        while operand is not None and operand.name().startswith(RESHAPES):
            operand = operand.next_functions[0][0]
        weight = getattr(operand, "variable", None)
        if weight is not None and gradient.numel() <= weight.numel():
            return True
    return False
