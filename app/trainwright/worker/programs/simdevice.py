"""A simulated accelerator, so that fake tensors take a GPU's code paths on any build of torch.

Only torch's hook for Python backends (PrivateUse1) is used: no compiled code, no CUDA, no
GPU. The hook is there from torch 2.10 on and is marked experimental by torch.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import attention
import autocast
import known
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils import backend_registration

DEVICE = "simgpu"
aten = torch.ops.aten

OWN_KERNEL = ("silu_backward", "mish_backward", "_fused_rms_norm")
"""Operators with a CUDA kernel and a composite body: without a kernel of the device's own,
torch would run the body and its temporaries would be logged (torch 2.10 to 2.13)."""

_installed = False
_libraries: list[torch.library.Library] = []


class _Backend:
    """What ``torch.<device>`` offers to checkpointing, AMP and the default device."""

    def is_available(self) -> bool:
        return True

    def is_initialized(self) -> bool:
        return True

    def _is_in_bad_fork(self) -> bool:
        return False

    def manual_seed_all(self, seed: int) -> None: ...

    def manual_seed(self, seed: int) -> None: ...

    def current_device(self) -> int:
        return 0

    def device_count(self) -> int:
        return 1

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.float16, torch.bfloat16, torch.float32]

    def get_rng_state(self, device: Any = None) -> torch.Tensor:
        return torch.zeros(16, dtype=torch.uint8, device="cpu")

    def set_rng_state(self, state: torch.Tensor, device: Any = None) -> None: ...

    def synchronize(self, device: Any = None) -> None: ...

    def empty_cache(self) -> None: ...

    def device(self, index: Any) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()


class _HostData(TorchFunctionMode):
    """Tensors made of Python data are made on the host and copied over, as on a GPU."""

    _makers = frozenset({torch.tensor, torch.as_tensor, torch.from_numpy})

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if function is torch.Tensor.pin_memory:
            return args[0]
        if function is torch.Tensor.__getitem__ and args[0].device.type == DEVICE:
            return function(args[0], _index(args[1], args[0].device))
        if function not in self._makers or (args and isinstance(args[0], torch.Tensor)):
            return function(*args, **kwargs)
        if args and isinstance(args[0], list):
            args = (_numbers(args[0]), *args[1:])
        device = torch.device(kwargs.get("device") or "cpu")
        host = {} if function is torch.from_numpy else {**kwargs, "device": "cpu"}
        result = function(*args, **host)
        if device.type == "cpu":
            return result
        if hasattr(result, "constant"):
            result.constant = None
            if args and isinstance(args[0], list):
                known.remember(result, args[0])
        return result.to(device)


def _index(given: Any, device: torch.device) -> Any:
    """Return an index with its lists of numbers as tensors on the device, as a GPU needs them."""
    if isinstance(given, tuple):
        return tuple(_index(each, device) for each in given)
    return torch.tensor(given).to(device) if isinstance(given, list) else given


def _numbers(given: Any) -> Any:
    """Return nested lists with the numbers that tensors among them hold."""
    if isinstance(given, list):
        return [_numbers(each) for each in given]
    return given.item() if isinstance(given, torch.Tensor) and not given.ndim else given


@contextlib.contextmanager
def simulate(kernel: str) -> Iterator[None]:
    """Run under fake tensors, with the given attention kernel."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    install()
    attention.wanted = kernel
    attention.used.clear()
    autocast.forget_weights()
    with FakeTensorMode(allow_non_fake_inputs=True), _HostData():
        try:
            yield
        finally:
            autocast.forget_weights()


def install() -> None:
    """Set the device up: once a process, before the first backward pass and any model code."""
    global _installed
    if _installed:
        return
    _installed = True

    class Hook(backend_registration._DummyPrivateUse1Hook):
        pass

    backend_registration._setup_privateuseone_for_python_backend(
        rename=DEVICE, backend_module=_Backend(), hook=Hook()
    )
    _let_optimizers_take_lists()
    _answer_as_cuda()
    _register_own_kernels()
    _register_fakes()
    _patch_scaler()
    known.install()
    nn.Module._apply = _apply  # type: ignore[method-assign,assignment]
    attention.install(DEVICE)
    autocast.install(DEVICE)


def _let_optimizers_take_lists() -> None:
    """On real tensors the foreach path is the default; it must not fall back on fakes."""
    import torch.optim.optimizer as optimizer
    from torch._subclasses.fake_tensor import FakeTensor
    from torch.utils import _foreach_utils

    for module in (_foreach_utils, optimizer):
        types: list[type] = module._foreach_supported_types  # type: ignore[attr-defined]
        if FakeTensor not in types:
            types.append(FakeTensor)


def _answer_as_cuda() -> None:
    """Shape functions that differ by device answer as for CUDA."""
    import torch._meta_registrations as registrations
    import torch._refs.nn.functional as references
    import torch._subclasses.fake_impls as implementations

    original: Any = registrations.device_hint  # type: ignore[attr-defined]

    def device_hint(tensor: Any) -> str:
        hint: str = original(tensor)
        return "cuda" if hint == DEVICE else hint

    for module in (registrations, references, implementations):
        if hasattr(module, "device_hint"):
            module.device_hint = device_hint


def _register_own_kernels() -> None:
    library = torch.library.Library("aten", "IMPL")
    _libraries.append(library)
    for name in OWN_KERNEL:

        def never(*args: Any, name: str = name, **kwargs: Any) -> None:
            raise NotImplementedError(f"{name} was run on the simulated device")

        with contextlib.suppress(RuntimeError):  # not in this version of torch
            library.impl(name, never, "PrivateUse1")


def _register_fakes() -> None:
    """Shape functions that torch lacks: in-place fused optimizers, the GRU cell and CTC."""

    def in_place(*args: Any, **kwargs: Any) -> None:
        return None

    def gru(
        input_gates: torch.Tensor, hidden_gates: torch.Tensor, hidden: torch.Tensor, *biases: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        # The CUDA kernel keeps five values a hidden unit for backward (RNN.cu).
        workspace = hidden.new_empty((hidden.shape[0], hidden.shape[1] * 5))
        return hidden.new_empty(hidden.shape), workspace

    def gru_backward(
        grad: torch.Tensor, workspace: torch.Tensor, has_bias: bool
    ) -> tuple[torch.Tensor | None, ...]:
        rows, hidden = grad.shape
        gates = [grad.new_empty((rows, 3 * hidden)) for _ in range(2)]
        biases = [grad.new_empty((3 * hidden,)) if has_bias else None for _ in range(2)]
        return (*gates, grad.new_empty((rows, hidden)), *biases)

    def ctc(
        logs: torch.Tensor, labels: torch.Tensor, heard: Any, written: Any, *rest: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        # The forward variables: labels with a blank around each (LossCTC.cu).
        steps, samples, _ = logs.shape
        alpha = logs.new_empty((samples, steps, 2 * max(written) + 1))
        return logs.new_empty((samples,)), alpha

    def ctc_backward(grad: torch.Tensor, logs: torch.Tensor, *rest: Any) -> torch.Tensor:
        return torch.empty_like(logs)

    fakes: dict[str, Any] = {
        "_ctc_loss": ctc,
        "_ctc_loss_backward": ctc_backward,
        "_thnn_fused_gru_cell": gru,
        "_thnn_fused_gru_cell_backward": gru_backward,
        "_fused_sgd_": in_place,
        "_fused_sgd_.tensor_lr": in_place,
        "_fused_adagrad_": in_place,
        "_fused_adagrad_.tensor_lr": in_place,
    }
    for name, fake in fakes.items():
        if hasattr(aten, name.split(".")[0]):
            torch.library.register_fake(f"aten::{name}", fake, allow_override=True)


def _patch_scaler() -> None:
    """The scaler reads whether gradients overflowed; here they never do."""

    def step(scaler: Any, optimizer: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
        return optimizer.step(*args, **kwargs)

    def update(scaler: Any, new_scale: Any = None) -> None:
        scaler._per_optimizer_states.clear()

    torch.amp.GradScaler._maybe_opt_step = step  # type: ignore[assignment,method-assign]
    torch.amp.GradScaler.update = update  # type: ignore[method-assign,assignment]


_moved: dict[int, tuple[Any, Any]] | None = None


def _apply(self: nn.Module, function: Any, recurse: bool = True) -> nn.Module:
    """``Module._apply`` for tensors whose data cannot be swapped; ties are kept.

    Children first, then parameters, then buffers: torch's order, which is the order of
    allocation on the device.
    """
    global _moved
    outermost = _moved is None
    moved: dict[int, tuple[Any, Any]] = {} if _moved is None else _moved
    _moved = moved
    try:
        if recurse:
            for child in self.children():
                child._apply(function)
        for tensors in (self._parameters, self._buffers):
            for name, tensor in tensors.items():
                if tensor is not None:
                    tensors[name] = _converted(tensor, function, moved)  # type: ignore[assignment]
    finally:
        if outermost:
            _moved = None
    return self


def _converted(tensor: Any, function: Any, moved: dict[int, tuple[Any, Any]]) -> Any:
    hit = moved.get(id(tensor))
    if hit is not None and hit[0] is tensor:
        return hit[1]
    with torch.no_grad():
        result = function(tensor)
    if isinstance(tensor, nn.Parameter) and not isinstance(result, nn.Parameter):
        result = nn.Parameter(result, tensor.requires_grad)
    moved[id(tensor)] = (tensor, result)
    return result
