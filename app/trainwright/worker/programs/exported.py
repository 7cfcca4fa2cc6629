"""Programs of ``torch.export`` in a ``.pt2`` file, after the user's consent: they may hold code.

The file is loaded on the CPU, outside the fake mode, which cannot read it (torch 2.13). What
of it is bound to the CPU is bound to the simulated device instead.
"""

import hashlib
import inspect
from collections.abc import Iterator
from typing import IO, Any

import guess
import step
import torch
from refusal import Refusal
from simdevice import DEVICE
from subject import Subject, first_line
from torch import fx

_MODES = {"aten::batch_norm": 5, "aten::dropout": 2, "aten::instance_norm": 5}
"""Operator -> place of the argument that says whether it trains (``native_functions.yaml``)."""
_CHECKS = ("aten::_assert_tensor_metadata",)
"""Operators that only compare with the device and type of the export."""
READ_BYTES = 1 << 20


def build(path: str, spec: dict[str, Any]) -> Subject:
    """Return the program as a module, with the batches that its inputs allow.

    Raises:
        Refusal: it cannot be loaded, was exported for other uses or shapes, or the task needs
            the layers that an export no longer has.
    """
    if spec["task"] in ("lora", "qlora") or spec["quantization"] != "none":
        raise Refusal("worker.pt2-task", file=path)
    with torch.device("cpu"):
        program = _loaded(path, spec["model"]["sha256"])
        module = _module(program)
    trains = spec["task"] != "infer"
    _check_mode(module, trains, path)
    shapes = _Shapes(program, spec, path)
    names = [str(node.target) for node in module.graph.nodes if node.op == "placeholder"]
    if len(names) != len(shapes.inputs):
        raise Refusal("worker.pt2-inputs", file=path)
    _bind(module)
    module.to("meta")
    facts: dict[str, Any] = {"stack": "plain", "family": "exported"}
    if spec["image_size"]:
        facts["image_size"] = spec["image_size"]

    def feed(size: int, length: int) -> step.Tensors:
        return dict(zip(names, shapes.made(size, length), strict=True))

    label, loss = guess.judged(shapes.returned, facts)

    def batch(size: int, length: int) -> step.Batch:
        return step.Batch(feed(size, length), label(size, length))

    return Subject(module, batch, loss, facts)


def _loaded(path: str, sha256: str) -> Any:
    """Load the file that was asked about: it is hashed and read by one handle."""
    try:
        with open(path, "rb") as file:
            if _hash(file) != sha256:
                raise Refusal("worker.code-changed", file=path)
            file.seek(0)
            return torch.export.load(file)
    except (Refusal, MemoryError):
        raise
    except Exception as error:
        if "can't allocate memory" in str(error):
            raise MemoryError from error
        raise Refusal("worker.pt2-unreadable", file=path, reason=first_line(error)) from error


def _hash(file: IO[bytes]) -> str:
    found = hashlib.sha256()
    while part := file.read(READ_BYTES):
        found.update(part)
    return found.hexdigest()


def _module(program: Any) -> fx.GraphModule:
    """Return the program as a module of tensors by name, without the checks of its export."""
    checked = "check_guards" in inspect.signature(program.module).parameters
    bound = program.module(check_guards=False) if checked else program.module()
    bound.graph.set_codegen(fx.graph.CodeGen())  # no nested arguments: tensors in, tensors out
    return fx.GraphModule(bound, bound.graph)  # a copy without the hooks that hold it to its shapes


def _graphs(module: fx.GraphModule) -> Iterator[fx.GraphModule]:
    """Yield the module and those of the branches and loops in it."""
    for part in module.modules():
        if isinstance(part, fx.GraphModule):
            yield part


def _name(node: fx.Node) -> str:
    return node.target._schema.name if hasattr(node.target, "_schema") else ""


def _check_mode(module: fx.GraphModule, trains: bool, path: str) -> None:
    for graph in _graphs(module):
        for node in graph.graph.nodes:
            place = _MODES.get(_name(node))
            if place is not None and len(node.args) > place and node.args[place] is not trains:
                raise Refusal("worker.pt2-trains" if trains else "worker.pt2-serves", file=path)


def _bind(module: fx.GraphModule) -> None:
    """Bind constants and the devices in the graph to the simulated device."""

    def moved(value: Any) -> Any:
        return torch.device(DEVICE) if isinstance(value, torch.device) else value

    for graph in _graphs(module):
        for node in list(graph.graph.nodes):
            if _name(node) in _CHECKS:
                graph.graph.erase_node(node)
                continue
            node.args = fx.node.map_aggregate(node.args, moved)
            node.kwargs = fx.node.map_aggregate(node.kwargs, moved)
            if node.op == "get_attr":
                _move_constant(graph, str(node.target))
        graph.recompile()


def _move_constant(graph: fx.GraphModule, target: str) -> None:
    """Make a constant a buffer, so that it moves with the module."""
    above, _, name = target.rpartition(".")
    holder = graph.get_submodule(above)
    value = getattr(holder, name)
    known = name in holder._parameters or name in holder._buffers
    if isinstance(value, torch.Tensor) and not known:
        delattr(holder, name)
        holder.register_buffer(name, value, persistent=False)


class _Shapes:
    """Shapes of inputs and output, as the export leaves batch, length and size free."""

    def __init__(self, program: Any, spec: dict[str, Any], path: str) -> None:
        self._path = path
        wanted = set(program.graph_signature.user_inputs)
        self.inputs = [
            node.meta["val"] for node in program.graph.nodes
            if node.op == "placeholder" and node.name in wanted
        ]  # fmt: skip
        if not self.inputs or not all(isinstance(each, torch.Tensor) for each in self.inputs):
            raise Refusal("worker.pt2-inputs", file=path)
        outputs = next(node for node in program.graph.nodes if node.op == "output").args[0]
        kept = set(program.graph_signature.user_outputs)
        tensors = [node.meta["val"] for node in outputs if node is not None and node.name in kept]
        if not tensors or not isinstance(tensors[0], torch.Tensor):
            raise Refusal("worker.loss-unknown", file=path)
        self._output = tensors[0]
        self._free = self._told(program.range_constraints)
        self._check(spec, program.range_constraints)

    def _told(self, ranges: Any) -> dict[str, Any]:
        """Return the symbols of batch, length and pixels among the free dimensions."""
        free: dict[str, Any] = {}
        for tensor in self.inputs:
            for place, size in enumerate(tensor.shape):
                symbol = _symbol(size)
                if symbol is None or symbol not in ranges or symbol in free.values():
                    continue
                image = tensor.dim() >= 4 and place >= tensor.dim() - 2
                kind = "batch" if place == 0 else "image" if image else "sequence"
                if kind in free and kind != "image":
                    raise Refusal("worker.pt2-inputs", file=self._path)
                free[kind if kind not in free else "image too"] = symbol
        return free

    def _check(self, spec: dict[str, Any], ranges: Any) -> None:
        """Refuse what the export does not leave free."""
        path, shape = self._path, self.inputs[0].shape
        side = _number(shape[-1]) if len(shape) >= 4 else 0
        if "sequence" in self._free and not spec["sequence"]:
            raise Refusal("worker.needs-length", file=path)
        if "image" in self._free and not spec["image_size"]:
            raise Refusal("worker.needs-size", file=path)
        if "sequence" not in self._free and spec["sequence"]:
            raise Refusal("worker.pt2-length", file=path)
        if "image" not in self._free and spec["image_size"] not in (0, side):
            raise Refusal("worker.pt2-size", file=path, size=side)
        self._pixels = spec["image_size"]
        fixed = _number(shape[0]) if len(shape) else 1
        if "batch" not in self._free and any(batch != fixed for batch, _ in spec["points"]):
            raise Refusal("worker.pt2-batch", file=path, batch=fixed)
        for batch, length in spec["points"]:
            for symbol, value in self._values(batch, length).items():
                least, most = ranges[symbol].lower, ranges[symbol].upper
                if not least <= value <= most:
                    raise Refusal(
                        "worker.pt2-range", file=path, value=value, least=int(least),
                        most=str(most) if most < 10**12 else "∞",
                    )  # fmt: skip

    def _values(self, batch: int, length: int) -> dict[Any, int]:
        given = {"batch": batch, "sequence": length, "image": self._pixels}
        given["image too"] = self._pixels
        return {symbol: given[kind] for kind, symbol in self._free.items()}

    def _at(self, tensor: Any, batch: int, length: int) -> tuple[int, ...]:
        values = self._values(batch, length)
        return tuple(
            int(size.node.expr.xreplace(values)) if isinstance(size, torch.SymInt) else size
            for size in tensor.shape
        )

    def made(self, batch: int, length: int) -> list[torch.Tensor]:
        """Return one batch of inputs on the host."""
        return [
            torch.zeros(self._at(each, batch, length), dtype=each.dtype, device="cpu")
            for each in self.inputs
        ]

    def returned(self, batch: int, length: int) -> tuple[int, ...]:
        """Return the shape of the output."""
        return self._at(self._output, batch, length)


def _number(size: Any) -> int:
    """Return a fixed dimension; 0 for a free one, which asking for a number would fix."""
    return 0 if isinstance(size, torch.SymInt) else int(size)


def _symbol(size: Any) -> Any:
    """Return the symbol of a free dimension; None for a number or a formula of others."""
    expression = size.node.expr if isinstance(size, torch.SymInt) else None
    return expression if expression is not None and expression.is_symbol else None
