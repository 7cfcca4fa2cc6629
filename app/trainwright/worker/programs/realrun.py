"""A model made real, its training steps run and timed: what the plan says, on this device."""

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import pairwise
from typing import Any

import factory
import feeding
import models
import profiled
import step
import torch
from cpukernels import install as install_cpu_kernels
from memorylog import HostLog, available, device_used, limit_data, resident
from refusal import Refusal
from saying import Say
from shaping import shape
from subject import Subject
from torch import nn

WARM_UPS = 2
"""Steps before any is timed: the first makes the optimizer's state, the second repeats."""
SMALL = 0.02
"""Standard deviation of made-up weights: ``initializer_range`` of GPT-2 and most after it."""
HOST = (
    "can't allocate memory",
    "not enough memory",
    "bad_alloc",
    "Cannot allocate memory",
    "Resource temporarily unavailable",
)
"""What torch and the C++ library say when the system's memory, or the limit, is used up; the last
of a thread whose stack finds no room."""
OTHERS = {
    "adamw-8bit": ("bitsandbytes", "AdamW8bit"),
    "paged-adamw-8bit": ("bitsandbytes", "PagedAdamW8bit"),
    "paged-adamw": ("bitsandbytes", "PagedAdamW"),
    "lion": ("bitsandbytes", "Lion"),
    "adamw-8bit-torchao": ("torchao", "AdamW8bit"),
    "adamw-4bit": ("torchao", "AdamW4bit"),
}
"""Name in the plan -> library and its class, as the exported programs have them."""


def look() -> dict[str, Any]:
    """Return what there is to run on: a GPU, or else the CPU."""
    versions = {"torch": torch.__version__.partition("+")[0]}
    if not torch.cuda.is_available():
        return {"device": "cpu", "versions": versions, "available_bytes": available()}
    found = torch.cuda.get_device_properties(0)
    return {
        "device": "cuda",
        "name": found.name,
        "total_bytes": found.total_memory,
        "available_bytes": available(),
        "versions": versions,
    }


def measured(question: dict[str, Any], say: Say) -> dict[str, Any]:
    """Return what the steps took; where memory ran out, on which side and when."""
    stage = ["worker.starting"]

    def tell(share: float, message_id: str) -> None:
        stage[0] = message_id
        say(share, message_id)

    try:
        with factory.blaming(question):
            return Run(question, tell).measured()
    except (RuntimeError, MemoryError) as error:
        side = _ran_out(error)
        if side is None:
            raise
        return {
            "out_of_memory": {
                "side": side,
                "stage": stage[0],
                "asked": str(error).splitlines()[0][:300] if str(error) else "",
            }
        }


def _ran_out(error: BaseException) -> str | None:
    """Return whose memory ran out: ``device`` or ``host``; None for another error."""
    if isinstance(error, torch.OutOfMemoryError):
        return "device"
    text = str(error)
    return "host" if isinstance(error, MemoryError) or any(p in text for p in HOST) else None


class Run:
    """One model on one device, and what its steps took."""

    def __init__(self, question: dict[str, Any], say: Say) -> None:
        self.question, self.say = question, say
        self.cuda = question["device"] == "cuda"
        self.device = torch.device(question["device"])
        self.end = time.monotonic() + question["seconds"]
        self.workspace: int | None = None
        self.before: int | None = None
        if self.cuda:
            self.before = device_used()
            self.workspace = _workspace(self.device)
        else:
            install_cpu_kernels()
        given = question.get("loader")
        self.readers = feeding.Readers.loaded(given["programs"]) if given else None
        torch.manual_seed(0)
        say(0.05, "worker.building")
        self.subject: Subject = models.build(question)
        self.settings = self._shaped()
        hosts = [self._sample() for _ in range(question["micro_batches"])]
        self.hosts = [pinned(host) for host in hosts] if self.cuda else hosts
        self.micro: list[list[float]] = []
        self.updates: list[float] = []
        self.held: list[Any] = []

    @property
    def model(self) -> nn.Module:
        """The model of the plan."""
        return self.subject.model

    def _shaped(self) -> step.StepSettings:
        """Give the model its types and adapters; return the settings of its real step."""
        wanted = self.question["step"]
        policy = "none" if wanted["offload"] else wanted["checkpointing"]
        shape(self.subject, self.question | {"checkpointing": policy})
        if wanted["offload"]:
            blocks = step.blocks(self.model)
            step.checkpoint_blocks(blocks, wanted["checkpointing"], offload=True)
        step.allow_tf32(wanted["precision"])
        return step.StepSettings(**wanted)

    def _sample(self) -> step.Batch:
        """Return the longest sample as often as the micro-batch has it, with made-up content."""
        made = self.subject.batch(self.question["batch"], self.question["sequence"])
        for name, value in made.inputs.items():
            if not isinstance(value, torch.Tensor):
                continue
            if value.is_floating_point():
                value.normal_()
            elif name == "input_ids" and (most := self.subject.facts.get("vocabulary", 0)):
                value.random_(0, int(most))
        return made

    # What is measured

    def measured(self) -> dict[str, Any]:
        """Return the answer."""
        # Now: libraries that lack memory while they are loaded may wait for ever.
        limit_data(self.question.get("memory_bytes"))
        log = HostLog() if not self.cuda else None
        with log or nullcontext():
            self._make()
            for number in range(WARM_UPS):
                self.say(0.1 + 0.15 * number, "worker.verify-warming")
                self._step()
        live = log.peak() if log is not None else None
        between = log.peak_between_convolutions() if log is not None else None
        del log
        gc.collect()
        self.micro.clear()
        self.updates.clear()
        resident_before = resident(reset=True)
        self._timed()
        answer = {
            "device": self.question["device"],
            "allocated_peak_bytes": live,
            "between_convolutions_bytes": between,
            "reserved_peak_bytes": None,
            "device_used_bytes": None,
            "context_bytes": None,
            "workspace_bytes": self.workspace,
            "resident_peak_bytes": resident() if resident_before is not None else None,
            "steps": len(self.updates),
            "micro_batches": len(self.hosts),
            "step_seconds": self._steps(),
        }
        if self.cuda:
            answer |= self._device_memory()
        if (given := self.question.get("loader")) is not None:
            self.say(0.8, "worker.verify-loading")
            answer["loader"] = self._fed(given)
        if (steps := self.question.get("profile_steps")) is not None:
            self.say(0.9, "worker.verify-profiling")
            folder = self.question["folder"]
            answer["profile"] = profiled.traced(self._step, steps, folder, self.cuda)
        return answer

    def _make(self) -> None:
        place(self.model, self.device)
        fill(self.model)
        library = OTHERS.get(self.settings.optimizer)
        self.optimizer = step.make_optimizer(
            self.model, self.settings, _maker(*library, self.settings) if library else None
        )
        if self.question.get("optimizer_offload") == "cpu":
            self.optimizer = _offloaded(self.model, self.settings)
        self.scaler = step.make_scaler(self.settings, self.device.type)
        if self.question.get("compile"):
            self.model.compile()

    def _timed(self) -> None:
        steps = self.question["steps"]
        while len(self.updates) < steps and (not self.updates or time.monotonic() < self.end):
            self.say(0.4 + 0.4 * len(self.updates) / steps, "worker.verify-timing")
            self._step()

    def _step(self, batches: Sequence[step.Batch] | None = None) -> None:
        """Run the parts of ``step.train_step`` with a clock between them."""
        hosts = self.hosts if batches is None else batches
        count = step.counted(hosts, self.subject.loss)
        marks = [self._mark()]
        clear = step.clearing(self.optimizer, self.settings)
        for host in hosts:
            batch = self._moved(host)
            how = self.subject.loss, self.settings, self.scaler, self.held
            step.micro_step(self.model, batch, count, *how, clear)
            clear = None
            del batch
            marks.append(self._mark())
        step.update(self.model, self.optimizer, self.settings, self.scaler, self.held)
        marks.append(self._mark())
        *micro, update = _between(marks)
        self.micro.append(micro)
        self.updates.append(update)

    def _moved(self, host: step.Batch) -> step.Batch:
        if self.cuda:
            return step.to_device(host, self.device, self.settings)
        return step.to_device(copied(host), self.device, self.settings)

    def _mark(self) -> Any:
        if not self.cuda:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def _steps(self) -> list[float]:
        """Return the seconds of whole optimizer steps, of all micro-batches that the plan has."""
        share = self.question["accumulation"] / len(self.hosts)
        pairs = zip(self.micro, self.updates, strict=True)
        return [share * sum(micro) + update for micro, update in pairs]

    def _device_memory(self) -> dict[str, int | None]:
        torch.cuda.synchronize()
        used, reserved = device_used(), torch.cuda.max_memory_reserved()
        context = None
        if used is not None and self.before is not None:
            context = used - self.before - torch.cuda.memory_reserved()
        return {
            "allocated_peak_bytes": torch.cuda.max_memory_allocated(),
            "reserved_peak_bytes": reserved,
            "device_used_bytes": used,
            "context_bytes": context if context is None or context > 0 else None,
        }

    def _fed(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the seconds of steps that the plan's own loader feeds, and of waiting for it."""
        try:
            assert self.readers is not None
            batches = feeding.batches(
                self.readers, given, self.subject, self.hosts[0], self.question
            )
            return self._timed_with(batches)
        except feeding.UnusableError as error:
            return {"problem": str(error)[:300]}

    def _timed_with(self, batches: Iterator[step.Batch]) -> dict[str, Any]:
        waits, whole = [], []
        for number in range(1 + self.question["steps"]):
            began = time.perf_counter()
            drawn = [next(batches) for _ in self.hosts]
            waited = time.perf_counter() - began
            self._step(drawn)
            if self.cuda:
                torch.cuda.synchronize()
            if number:  # the first waits for the workers to start
                waits.append(waited)
                whole.append(time.perf_counter() - began)
            if whole and time.monotonic() > self.end:
                break
        return {
            "wait_seconds": statistics.median(waits),
            "step_seconds": statistics.median(whole),
            "steps": len(whole),
        }


def _between(marks: Sequence[Any]) -> list[float]:
    """Return the seconds between one mark and the next."""
    if isinstance(marks[0], float):
        return [after - before for before, after in pairwise(marks)]
    marks[-1].synchronize()
    pairs = pairwise(marks)
    return [before.elapsed_time(after) / 1e3 for before, after in pairs]


# Model and batches


def place(model: nn.Module, device: torch.device) -> None:
    """Give a model of ``meta`` memory on the device; what was shared is made once and stays so."""
    made: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
    for module in model.modules():
        for table in (module._parameters, module._buffers):
            for name, old in table.items():
                if old is None:
                    continue
                if id(old) not in made:
                    made[id(old)] = old, _made_real(old, device)
                table[name] = made[id(old)][1]  # type: ignore[assignment]
        if isinstance(module, nn.RNNBase):  # it keeps its weights in a list too
            module._init_flat_weights()


def _made_real(old: torch.Tensor, device: torch.device) -> torch.Tensor:
    new = torch.empty_like(old, device=device)
    return nn.Parameter(new, old.requires_grad) if isinstance(old, nn.Parameter) else new


def fill(model: nn.Module) -> None:
    """Make up weights: no run waits for a download, and nothing here depends on their values."""
    with torch.no_grad():
        for name, value in (*model.named_parameters(), *model.named_buffers()):
            if not value.is_floating_point():
                value.zero_()
            elif value.dim() > 1:
                value.normal_(0, SMALL)
            else:
                value.fill_(0.0 if name.endswith("bias") else 1.0)


def copied(host: step.Batch) -> step.Batch:
    """Return a copy, as a GPU gets one: on the CPU ``to_device`` hands the same tensors on."""
    return step.Batch(_each(host.inputs, torch.clone), _each(host.labels, torch.clone))


def pinned(host: step.Batch) -> step.Batch:
    """Return the batch in pinned memory, as a loader with ``pin_memory`` hands it over."""
    pin = torch.Tensor.pin_memory
    return step.Batch(_each(host.inputs, pin), _each(host.labels, pin))


def _each(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, dict):
        return {name: _each(item, change) for name, item in value.items()}
    return change(value) if isinstance(value, torch.Tensor) else value


# Optimizers and workspaces


def _maker(library: str, name: str, settings: step.StepSettings) -> step.Make:
    try:
        module = __import__(f"{library}.optim", fromlist=[name])
    except ImportError as error:
        raise Refusal("worker.package-missing", package=library, source=name) from error
    return partial(getattr(module, name), lr=settings.learning_rate)


def _offloaded(model: nn.Module, settings: step.StepSettings) -> Any:
    """Return torchao's optimizer on the CPU; gradients stay on the GPU until the step."""
    kind: Any = _maker("torchao", "CPUOffloadOptimizer", settings).func  # type: ignore[attr-defined]
    kinds = {"adamw": torch.optim.AdamW, "sgd": partial(torch.optim.SGD, momentum=0.9)}
    return kind(model.parameters(), kinds[settings.optimizer], lr=settings.learning_rate)


def _workspace(device: torch.device) -> int:
    """Return what the first product of matrices leaves with the allocator: cuBLAS's workspace."""
    before = torch.cuda.memory_allocated()
    ones = torch.ones((64, 64), device=device)
    product = ones @ ones
    del ones, product
    torch.cuda.synchronize()
    return torch.cuda.memory_allocated() - before
