"""Whether PyTorch, or the engine that serves, runs on a GPU under an operating system.

Statements are of published support lists, each with its source, as of 2026; nothing here is
measured. A GPU that nobody lists may still run.
"""

from dataclasses import dataclass
from typing import Literal

from trainwright.catalog import GpuRecord
from trainwright.machine.machine import System
from trainwright.messages import Message
from trainwright.workload import FullSettings

State = Literal["supported", "older", "prototype", "preview", "unlisted", "unsupported"]
"""``older``: only in builds of an older CUDA; ``prototype``: PyTorch's own word for what may
change; ``preview``: AMD's; ``unlisted``: code is built for the chip, no list names the card."""


@dataclass(frozen=True, slots=True)
class Support:
    """What the lists say of a GPU."""

    state: State
    because: Message
    source: str

    @property
    def runs(self) -> bool:
        """Whether anything at all can be expected to run."""
        return self.state != "unsupported"


CUDA = "PyTorch RELEASE.md, CUDA support matrix; pytorch/pytorch #172352, #190385"
ROCM = "ROCm documentation, compatibility matrix; PYTORCH_ROCM_ARCH of PyTorch's builds"
ROCM_WINDOWS = "ROCm on Radeon and Ryzen 7.1, limitations: on Windows only PyTorch, as a preview"
XPU = "PyTorch 2.12 documentation, Getting Started on Intel GPU"
GAUDI = "Intel Gaudi documentation, PyTorch: a bridge beside PyTorch's own builds"
MPS = "developer.apple.com/metal/pytorch: Apple silicon, macOS 14 or later"
VLLM = "vLLM documentation, installation: Linux; NVIDIA CUDA, AMD ROCm, Intel XPU"
SGLANG = "SGLang documentation, installation: Linux; NVIDIA CUDA, AMD ROCm on Instinct"
TENSORRT = "TensorRT-LLM documentation, support matrix: NVIDIA, Linux"
LLAMA_CPP = "llama.cpp README, supported backends: CUDA, HIP, SYCL, Metal, Vulkan"

_TARGETS = {
    **{"Arcturus": "gfx908", "Aldebaran": "gfx90a", "Aqua Vanjaram": "gfx942"},
    **{"Galaxy": "gfx950", "Navi 21": "gfx1030", "Navi 22": "gfx1031", "Navi 31": "gfx1100"},
    **{"Navi 32": "gfx1101", "Navi 33": "gfx1102", "Strix Halo": "gfx1151"},
    **{"Strix Point": "gfx1150", "Phoenix": "gfx1103"},
    **{"Navi 44": "gfx1200", "Navi 48": "gfx1201"},
}
"""AMD's chip -> the target that its code is compiled for (LLVM, AMDGPU usage)."""
_BUILT = frozenset(_TARGETS.values()) - {"gfx1031", "gfx1103"}
"""Targets that PyTorch's ROCm builds hold."""
_UNLISTED = frozenset({"gfx1102", "gfx1150", "gfx1151"})
"""Built, and no list of cards that ROCm on Linux supports names them: assumed."""
_NEWEST_CUDA = (7, 5)
"""Turing: the first that CUDA 13, and builds for it, know."""
_OF_CUDA_12 = (5, 0)


def support(record: GpuRecord, system: System, settings: FullSettings) -> Support:
    """Return what runs the workload on the GPU: the engine that serves, or PyTorch."""
    if record.architecture == "Gaudi":
        return pytorch(record, system)
    match settings.engine:
        case "llama.cpp" | "ollama":
            return Support("supported", _said("llama-cpp", record, system), LLAMA_CPP)
        case "tensorrt-llm":
            return _engine(record, system, "tensorrt-llm", {"NVIDIA"}, TENSORRT)
        case "sglang":
            return _engine(record, system, "sglang", {"NVIDIA", "AMD"}, SGLANG)
        case "vllm":
            return _engine(record, system, "vllm", {"NVIDIA", "AMD", "Intel"}, VLLM)
    return pytorch(record, system)


def _engine(
    record: GpuRecord, system: System, engine: str, vendors: set[str], source: str
) -> Support:
    """Return the support of an engine of Linux that stands on PyTorch."""
    if system != "linux" or record.vendor not in vendors:
        said = Message.of(
            "machine.support.engine", engine=engine, gpu=record.name, system=_SYSTEMS[system]
        )
        return Support("unsupported", said, source)
    return pytorch(record, system)


def pytorch(record: GpuRecord, system: System) -> Support:
    """Return what PyTorch's lists say of a GPU under a system."""
    if record.architecture == "Gaudi":
        return Support("unsupported", _said("gaudi", record, system), GAUDI)
    match record.vendor:
        case "NVIDIA":
            return _nvidia(record, system)
        case "AMD":
            return _amd(record, system)
        case "Intel":
            return _intel(record, system)
    runs = system == "macos"
    state: State = "supported" if runs else "unsupported"
    return Support(state, _said("mps" if runs else "no-mps", record, system), MPS)


def _nvidia(record: GpuRecord, system: System) -> Support:
    if system == "macos":
        return Support("unsupported", _said("no-cuda", record, system), CUDA)
    capability = record.compute_capability or _NEWEST_CUDA
    if capability < _OF_CUDA_12:
        return Support("unsupported", _said("too-old", record, system), CUDA)
    if capability < _NEWEST_CUDA:
        return Support("older", _said("cuda-12", record, system), CUDA)
    return Support("supported", _said("cuda", record, system), CUDA)


def _amd(record: GpuRecord, system: System) -> Support:
    target = _TARGETS.get(record.chip or "", "")
    if system == "linux":
        if target not in _BUILT:
            return Support("unsupported", _amd_said("no-rocm", record, system, target), ROCM)
        if target in _UNLISTED or (target == "gfx1030" and record.segment == "consumer"):
            return Support("unlisted", _amd_said("rocm-unlisted", record, system, target), ROCM)
        return Support("supported", _amd_said("rocm", record, system, target), ROCM)
    if system == "windows" and record.architecture in ("RDNA 3", "RDNA 3.5", "RDNA 4"):
        return Support("preview", _amd_said("rocm-windows", record, system, target), ROCM_WINDOWS)
    source = ROCM_WINDOWS if system == "windows" else ROCM
    return Support("unsupported", _amd_said("no-rocm", record, system, target), source)


def _intel(record: GpuRecord, system: System) -> Support:
    if system == "macos":
        return Support("unsupported", _said("no-xpu", record, system), XPU)
    return Support("prototype", _said("xpu", record, system), XPU)


_SYSTEMS = {"linux": "Linux", "windows": "Windows", "macos": "macOS"}


def _said(id: str, record: GpuRecord, system: System) -> Message:
    return Message.of(f"machine.support.{id}", gpu=record.name, system=_SYSTEMS[system])


def _amd_said(id: str, record: GpuRecord, system: System, target: str) -> Message:
    return Message.of(
        f"machine.support.{id}",
        gpu=record.name,
        system=_SYSTEMS[system],
        target=target or record.architecture,
    )


WIDER = 1.5
"""Factor on the interval of a training time where no row of the maker's GPUs was in a fit:
assumed; NeuSight's fp32 rows of MI100, MI210 and MI250 are the only ones at hand."""


def measured(record: GpuRecord) -> bool:
    """Return whether training times of the maker's GPUs were in a fit."""
    return record.vendor == "NVIDIA"


def widening(record: GpuRecord) -> float:
    """Return the factor by which a time's interval is wider than on GPUs that were measured."""
    return 1.0 if measured(record) else WIDER
