"""Runs the step of each case for real on the CPU, or traces it; started as a program.

    python truth_runs.py real|traced PROGRAMS_FOLDER < cases.json > answers.json

``real`` has no dispatch mode and no simulated device: torch's profiler logs what its CPU
allocator gives out and takes back, in two optimizer steps of two micro-batches.
"""

import gc
import json
import os
import sys
import warnings

warnings.simplefilter("ignore")
mode, folder = sys.argv[1:]
sys.path.insert(0, folder)
answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)

import models  # noqa: E402
import step  # noqa: E402
import torch  # noqa: E402
from shaping import shape, update  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402

if mode == "traced":
    import tracing  # a user's code takes the tracer's module names for its own

BACKENDS = (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH)
STAGES = ("micro", "again", "optimizer")


def rms_norm(x, shape, weight=None, eps=None):
    """Return what torch's own returns: one kernel on a GPU, but several steps on the CPU."""
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
    return x if weight is None else x * weight


torch.nn.functional.rms_norm = rms_norm


def real(spec):
    """Return the highest number of living bytes in each part of the two steps."""
    torch.manual_seed(0)
    subject = models.build(spec)
    policy, _, offload = spec["checkpointing"].partition("+")
    shaped = spec | {"checkpointing": "none" if offload else policy}
    settings = adapted(subject, spec) if "peft" in spec else shape(subject, shaped)
    if offload:
        torch.autograd.graph.save_on_cpu = set_aside
        step.checkpoint_blocks(step.blocks(subject.model), policy, offload=True)
    settings = step.StepSettings(
        precision=settings.precision,
        channels_last=settings.channels_last,
        **update(spec["optimizers"][0]),
        in_backward=bool(spec.get("in_backward")),
        clip=0.0 if spec.get("in_backward") else 1.0,
    )
    stages = STAGES[:1] if settings.in_backward else STAGES
    model = subject.model
    hosts = [subject.batch(*spec["points"][0]) for _ in range(2)]
    gc.collect()  # or the death of the case before would count in this one
    activities = [torch.profiler.ProfilerActivity.CPU]
    kernels = [SDPBackend.MATH] if spec["kernel"] == "math" else list(BACKENDS)
    memory = torch.profiler.profile(activities=activities, profile_memory=True)
    with sdpa_kernel(kernels), memory as profiler:
        if spec.get("built"):  # by diffusers itself, whose tables of positions are no buffers
            model = type(model).from_config(model.config)
            model.train()
        else:
            model.to_empty(device="cpu")  # torch gives shared weights a place for each user
        if hasattr(model, "tie_weights"):
            model.tie_weights()
        with torch.no_grad():
            for tensor in (*model.parameters(), *model.buffers()):
                if tensor.is_floating_point():
                    tensor.normal_(0, 0.02) if tensor.dim() > 1 else tensor.fill_(1.0)
                else:
                    tensor.zero_()
        optimizer = step.make_optimizer(model, settings)
        for number in range(2):
            for stage, host in zip(stages, hosts, strict=False):
                with torch.profiler.record_function(f"{stage}{number}"):
                    step.micro_step(model, copied(host), 1.0, subject.loss, settings)
            with torch.profiler.record_function(f"optimizer{number}"):
                step.update(model, optimizer, settings)
    return peaks(profiler.profiler.kineto_results.events())


def adapted(subject, spec):
    """Put PEFT's own adapters on the model, rather than ours."""
    import peft

    kind, options = spec["peft"]
    with torch.device("meta"):
        subject.model = peft.get_peft_model(subject.model, getattr(peft, kind)(**options))
    if hasattr(subject.model, "prompt_tokens"):  # numbers, which to_empty does not know of
        count = options["num_virtual_tokens"]
        subject.model.prompt_tokens = {"default": torch.arange(count)}
    subject.model.train()
    return step.StepSettings(precision=spec["precision"])


class set_aside(torch.autograd.graph.saved_tensors_hooks):  # noqa: N801
    """``save_on_cpu`` where the CPU is the device: numpy's memory is the system's."""

    def __init__(self, pin_memory):
        super().__init__(lambda tensor: tensor.numpy().copy(), lambda kept: torch.tensor(kept))


def copied(host):
    """Return a copy: on the CPU ``to_device`` would hand the same tensors on."""

    def copy(value):
        if isinstance(value, dict):
            return {name: copy(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(map(copy, value))
        return value.clone() if isinstance(value, torch.Tensor) else value

    return step.Batch(copy(host.inputs), copy(host.labels))


def peaks(events):
    changes = sorted((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]")
    names = {f"{stage}{number}" for stage in STAGES for number in range(2)}
    spans = {e.name(): (e.start_ns(), e.end_ns()) for e in events if e.name() in names}
    living, highest = 0, dict.fromkeys(spans, 0)
    for moment, change in changes:
        living += change
        for name, (begin, end) in spans.items():
            if begin <= moment <= end:
                highest[name] = max(highest[name], living)
    return highest


def traced(spec):
    return tracing.trace(spec, lambda progress, message: None)


if __name__ == "__main__":
    torch.backends.mkldnn.enabled = False
    torch.set_num_threads(1)
    run = real if mode == "real" else traced
    json.dump({name: run(spec) for name, spec in json.load(sys.stdin).items()}, answers)
    answers.flush()
    os._exit(0)
