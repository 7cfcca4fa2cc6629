"""From a spec to the log of every segment at every point."""

import contextlib
import gc
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import attention
import diffusion
import experts
import factory
import huggingface
import models
import simdevice
import step
import torch
import vision
from autocast import tensors
from prompts import cache_keyword
from questions import Answers
from recorder import Recorder
from refusal import Refusal
from segment import ALLOC, PACK, Segment
from shaping import shape, update
from simdevice import DEVICE

Say = Callable[[float, str], None]


def trace(spec: dict[str, Any], say: Say) -> dict[str, Any]:
    """Return the result document of a spec.

    Raises:
        Refusal: the model cannot be built or does not run; says why.
    """
    started = time.monotonic()
    torch.set_num_threads(1)
    simdevice.install()
    attention.expanding = bool(spec.get("method", {}).get("expanded_heads"))
    if spec.get("method", {}).get("softmax_inputs"):
        attention.keep_softmax_inputs()
    say(0.05, "worker.building")
    blaming = (factory.blaming, huggingface.blaming, diffusion.blaming, vision.blaming)
    with contextlib.ExitStack() as stack:
        for each in blaming:
            stack.enter_context(each(spec))
        run = Run(spec, say)
        with simdevice.simulate(spec["kernel"]), run.recorder:
            traces = [run.point(*point) for point in spec["points"]]
    return {
        "format": 1,
        "traces": traces,
        "model": run.facts,
        "assumptions": run.answers.given | run.subject.assumed,
        "kernels": dict(attention.used),
        "repeats": run.repeats,
        "versions": _versions(),
        "seconds": time.monotonic() - started,
    }


class Run:
    """One structure traced at its points; the model is built once."""

    def __init__(self, spec: dict[str, Any], say: Say) -> None:
        self.spec = spec
        self.say = say
        self.trains = spec["task"] != "infer"
        self.subject = models.build(spec)
        self._check_lengths()
        self.blocks = step.blocks(self.subject.model)
        self.weights = sum(weight.numel() for weight in self.subject.model.parameters())
        self.settings = shape(self.subject, spec)
        self.answers = Answers()
        experts.watch(self.subject.model, self.answers, spec.get("routing", "balanced"))
        self.recorder = Recorder(DEVICE, self.answers)
        self.recorder.follows = self.subject.counts
        self.on_graph: list[int] = []
        if spec.get("method", {}).get("input_gradients"):
            self._note_leaf()
        self.setup: Segment | None = None
        self.named: dict[int, str] = {}
        self.mark = (1, 0)
        self.repeats = True
        self.done = 0
        self.facts: dict[str, Any] = {}

    def _note_leaf(self) -> None:
        """Note the embedding's output, where it is asked for a gradient, and that gradient.

        Both hang on the graph, and so on what the model returned, even after backward.
        """

        def note(leaf: torch.Tensor) -> None:
            self.on_graph += map(self.recorder.storage_of, (leaf, leaf.grad))

        def ask(module: Any, given: Any, output: torch.Tensor) -> None:
            output.register_post_accumulate_grad_hook(note)

        find = getattr(self.subject.model, "get_input_embeddings", None)
        if find is not None:
            find().register_forward_hook(ask)

    def _check_lengths(self) -> None:
        longest = self.subject.longest
        asked = max((sequence for _, sequence in self.spec["points"]), default=0)
        asked += self.spec.get("method", {}).get("virtual_tokens", 0)
        if longest and asked > longest:
            raise Refusal("worker.sequence-too-long", asked=asked, longest=longest)

    # A point

    def point(self, batch: int, sequence: int) -> dict[str, Any]:
        """Return the log of every segment at one point."""
        main = self.setup is None
        recorder = self.recorder
        self._report(0.0)
        if main:
            self._set_up()
        recorder.rows.clear()
        recorder.reset(self.mark)
        recorder.category = dict(self.named)
        assert self.setup is not None
        segments = {"setup": self.setup}
        if self.trains:
            segments |= self._training(batch, sequence, main)
        else:
            segments |= self._inference(batch, sequence)
        self.done += 1
        return {
            "batch": batch,
            "sequence": sequence,
            "segments": {name: _columns(segment) for name, segment in segments.items()},
            "rows": [list(row) for row in recorder.rows],
            "category": {str(number): name for number, name in recorder.category.items()},
        }

    def _report(self, share: float) -> None:
        """Say how far the current point is, from 0 to 1."""
        done = (self.done + share) / len(self.spec["points"])
        self.say(0.1 + 0.85 * done, "worker.tracing")

    def _set_up(self) -> None:
        recorder, model = self.recorder, self.subject.model
        with recorder.record("setup") as self.setup:
            model.to_empty(device=DEVICE)
        if (reference := self.subject.reference) is not None:
            recorder.name("reference", (*reference.parameters(), *reference.buffers()))
        recorder.name("parameter", model.parameters())
        recorder.name("buffer", model.buffers())
        recorder.watch(self.blocks, model, reference)
        recorder.watch_recurrent(_recurrent(model))
        self.named = dict(recorder.category)
        self.mark = recorder.mark()
        self.facts = self._model_facts()

    def _training(self, batch: int, sequence: int, main: bool) -> dict[str, Segment]:
        recorder, model = self.recorder, self.subject.model
        settings = self.settings
        scaler = step.make_scaler(settings, DEVICE)
        if scaler is not None:
            with recorder.quiet():  # two numbers, made at the first use and kept
                scaler.scale(torch.ones((), device=DEVICE))
        segments = self._rollout(batch, sequence) if self.subject.policy is not None else {}
        # A micro-batch takes about as long as the second step, or as all other optimizers.
        if name := self.spec.get("in_backward"):
            return self._in_backward(batch, sequence, main, name)
        for number, name in enumerate(("micro", "again"), start=1):
            segments[name] = self._micro(batch, sequence, scaler)
            recorder.name("gradient", (parameter.grad for parameter in model.parameters()))
            self._report(0.25 * number)
        self.facts["blocks"] = len(segments["micro"].inputs)
        gradients = {
            parameter: recorder.storage_of(parameter.grad)
            for parameter in model.parameters()
            if parameter.grad is not None
        }
        names = self.spec["optimizers"] if main else ()
        for position, name in enumerate(names):
            if position:
                self._restore(gradients)
            segment, optimizer = self._optimizer(name, scaler)
            segments[f"optimizer:{name}"] = segment
            if not position and self.spec.get("check_repeat", True):
                self._second_step(batch, sequence, scaler, segments, name, optimizer)
            with recorder.quiet():
                del optimizer
                gc.collect()
            self._report(0.75 + 0.25 * position / len(names))
        with recorder.quiet():
            model.zero_grad(set_to_none=True)
        return segments

    def _micro(self, batch: int, sequence: int, scaler: Any) -> Segment:
        recorder, subject, settings = self.recorder, self.subject, self.settings
        with recorder.quiet():
            host = subject.batch(batch, sequence)
        try:
            with recorder.record("data") as segment, recorder.saved():
                step.micro_step(
                    subject.model, self._on_device(host), 1.0, self._loss, settings, scaler
                )
        except ValueError as error:
            if "more than 1 value per channel" not in str(error):
                raise
            raise Refusal("worker.one-value", batch=batch) from error
        recorder.call("kept_by_graph", self.on_graph)
        self.on_graph.clear()
        return segment

    def _loss(self, output: Any, labels: Any, count: float) -> torch.Tensor:
        """Return the loss; where the plan's loop holds what the model returned, it is named."""
        value = self.subject.loss(output, labels, count)
        if self.spec.get("method", {}).get("outputs"):
            self.recorder.name("output", tensors(output))
        return value

    def _on_device(self, host: step.Batch, stage: str = "forward") -> step.Batch:
        recorder = self.recorder
        moved = step.to_device(host, DEVICE, self.settings)
        recorder.name("input", tensors((moved.inputs, moved.labels)))
        recorder.stage = stage
        return moved

    def _rollout(self, batch: int, sequence: int) -> dict[str, Segment]:
        """Trace how a policy writes answers, and what gives them their log-probabilities."""
        recorder, policy = self.recorder, self.subject.policy
        with recorder.quiet():
            first, later = policy.prompts(batch, sequence), policy.prompts(batch, 1)
            host = step.Batch(self.subject.batch(batch, sequence).inputs, {})
        with policy.writing():
            segments = self._written({"prefill": first, "decode": later})
        for name, score in policy.scorers.items():
            with recorder.record("data") as segments[name], torch.no_grad():
                inputs = self._on_device(host, "score").inputs
                with step.autocast(self.settings, DEVICE):
                    score(inputs)
                del inputs
        return segments

    def _written(self, hosts: dict[str, step.Batch]) -> dict[str, Segment]:
        """Trace how answers begin, and one token of them, as ``generate`` samples it.

        What the last token was sampled from lives until the next one is there.
        """
        recorder, subject = self.recorder, self.subject
        cache, options = self._cache()
        sampled: list[torch.Tensor] = []
        segments: dict[str, Segment] = {}
        for name, host in hosts.items():
            with recorder.record("data") as segments[name], torch.no_grad():
                inputs = self._on_device(host, name).inputs
                with step.autocast(self.settings, DEVICE):
                    output = subject.model(**inputs, **options)
                recorder.name("kv_cache", _cached(cache))
                scores = output.logits[:, -1, :].to(copy=True, dtype=torch.float32)
                chances = torch.softmax(scores, dim=-1)
                sampled[:] = [scores, chances, torch.multinomial(chances, 1)]
                del inputs, output, scores, chances
                if name == "decode":
                    options.clear()
                    sampled.clear()
                    cache = None
        return segments

    def _cache(self) -> tuple[Any, dict[str, Any]]:
        """Return a cache of keys and values, and how a model is called with it."""
        from transformers import DynamicCache

        cache = DynamicCache(config=self.subject.config)
        options = {cache_keyword(self.subject.model): cache, "use_cache": True}
        if self._scores != "returned":
            options["logits_to_keep"] = 1
        return cache, options

    def _optimizer(
        self, name: str, scaler: Any, existing: Any = None
    ) -> tuple[Segment, torch.optim.Optimizer]:
        recorder, model = self.recorder, self.subject.model
        settings = step.StepSettings(self.settings.precision, **update(name))
        with recorder.record("clip") as segment:
            optimizer = existing or self._made(settings)
            hook = optimizer.register_step_pre_hook(self._enter_optimizer)
            step.update(model, optimizer, settings, scaler)
            hook.remove()
            recorder.name("optimizer", _state(optimizer))
        return segment, optimizer

    def _made(self, settings: step.StepSettings) -> torch.optim.Optimizer:
        model = self.subject.model
        if settings.optimizer == "muon":
            moved = sum(matrix.numel() for matrix in step.hidden_matrices(model))
            if not moved:
                raise Refusal("worker.no-matrices")
            self.facts["muon"] = moved
        return step.make_optimizer(model, settings)

    def _in_backward(self, batch: int, sequence: int, main: bool, name: str) -> dict[str, Segment]:
        """Trace a step whose backward moves each parameter as soon as its gradient is there."""
        recorder, segments = self.recorder, {}
        settings = step.StepSettings(
            self.settings.precision, **update(name), clip=0.0, in_backward=True
        )
        with recorder.quiet():
            optimizer = self._made(settings)
        born: list[int] = []
        for part in step.whole(optimizer):
            part.register_step_pre_hook(partial(self._update_begins, born))
            part.register_step_post_hook(self._update_ends)
        segments["micro"] = self._micro(batch, sequence, None)
        recorder.call("gradient", born)
        recorder.name("optimizer", _state(optimizer))
        self._report(0.5)
        self.facts["blocks"] = len(segments["micro"].inputs)
        if main and self.spec.get("check_repeat", True):
            known, rows = dict(recorder.category), dict(recorder.rows)
            lasting = {number for number, kind in known.items() if kind == "optimizer"}
            again = self._micro(batch, sequence, None)
            self.repeats = _births(again) == _births(segments["micro"], lasting)
            recorder.category, recorder.rows = known, rows
        if main:
            with recorder.record("optimizer") as segments[f"optimizer:{name}"]:
                step.update(self.subject.model, optimizer, settings)
        with recorder.quiet():
            for hook in optimizer.hooks:
                hook.remove()
            del optimizer, part
            gc.collect()
        return segments

    def _update_begins(self, born: list[int], optimizer: Any, *unused: Any) -> None:
        self.recorder.updating = True
        for group in optimizer.param_groups:
            born += [self.recorder.storage_of(one.grad) for one in group["params"]]

    def _update_ends(self, *unused: Any) -> None:
        self.recorder.updating = False

    def _enter_optimizer(self, *unused: Any) -> None:
        self.recorder.stage = "optimizer"

    def _restore(self, gradients: dict[Any, int]) -> None:
        """Give every parameter its gradient again, as the storage that it was."""
        with self.recorder.quiet():
            for parameter, storage in gradients.items():
                parameter.grad = torch.empty_like(parameter)
                self.recorder.adopt(parameter.grad, storage)

    def _second_step(
        self,
        batch: int,
        sequence: int,
        scaler: Any,
        segments: dict[str, Segment],
        name: str,
        optimizer: Any,
    ) -> None:
        """Check that a second step repeats the first but for births of optimizer state."""
        recorder = self.recorder
        known, rows = dict(recorder.category), dict(recorder.rows)
        micro = self._micro(batch, sequence, scaler)
        update, _ = self._optimizer(name, scaler, existing=optimizer)
        lasting = {number for number, kind in known.items() if kind == "optimizer"}
        self.repeats = _anonymous(micro) == _anonymous(segments["micro"]) and _births(
            update
        ) == _births(segments[f"optimizer:{name}"], lasting)
        recorder.category, recorder.rows = known, rows

    def _inference(self, batch: int, sequence: int) -> dict[str, Segment]:
        recorder, subject = self.recorder, self.subject
        with recorder.quiet():
            host = subject.batch(batch, sequence)
            one = subject.batch(batch, 1)
        cache: Any = None
        options: dict[str, Any] = {}
        if subject.decodes:
            cache, options = self._cache()
        segments = {}
        for name, given in (("prefill", host), ("decode", one)):
            if name == "decode" and not subject.decodes:
                break
            with recorder.record("data") as segments[name], torch.no_grad():
                self._answer(given, options)
                if cache is not None:
                    recorder.name("kv_cache", _cached(cache))
        self.facts["blocks"] = len(segments["prefill"].inputs)
        with recorder.quiet():
            options.clear()
            del cache
            gc.collect()
        return segments

    def _answer(self, host: step.Batch, options: dict[str, Any]) -> None:
        """Run the model once; a generating one ends with fp32 scores of the last token.

        Models of transformers before 4.45 make those of all tokens, and return them in fp32.
        """
        inputs = self._on_device(step.Batch(host.inputs, {})).inputs
        output = self.subject.model(**inputs, **options)
        if options and self._scores == "returned":
            output.logits = output.logits.float()
        if options:
            output.logits[:, -1, :].to(copy=True, dtype=torch.float32)

    @property
    def _scores(self) -> str:
        return str(self.spec.get("method", {}).get("scores", "upcast"))

    def _model_facts(self) -> dict[str, Any]:
        model = self.subject.model
        parameters = list(model.parameters())
        trained = [parameter for parameter in parameters if parameter.requires_grad]
        trained = trained if self.trains else []
        trainable = sum(parameter.numel() for parameter in trained)
        added = self.spec["task"] in ("lora", "qlora", "prompt", "prefix")
        adapters = trainable if added else 0
        held = sum(parameter.nbytes for parameter in parameters)
        # A GPU runs these as one fused kernel; here each step of theirs is traced by itself.
        recurrent = len(_recurrent(model))
        inside = sum(len(_recurrent(block)) for block in self.blocks)
        return (
            self.subject.facts
            | experts.bytes_held(model)
            | ({"recurrent": recurrent} if recurrent else {})
            | ({"recurrent_in_blocks": inside} if inside else {})
            | {
                "parameters": self.weights + adapters,
                "trainable": trainable,
                "frozen_bytes": held - sum(parameter.nbytes for parameter in trained),
                "buffers": sum(buffer.nbytes for buffer in model.buffers()),
                "blocks": len(self.blocks),
            }
        )


def _recurrent(model: torch.nn.Module) -> list[torch.nn.Module]:
    """Return the layers that a GPU runs as one fused kernel, and a trace step by step."""
    return [module for module in model.modules() if isinstance(module, torch.nn.RNNBase)]


def _cached(cache: Any) -> list[torch.Tensor | None]:
    """Return keys and values; layers with a state alone have none."""
    return [getattr(layer, name, None) for layer in cache.layers for name in ("keys", "values")]


def _columns(segment: Segment) -> dict[str, Any]:
    events = segment.events
    return {
        "code": [event[0] for event in events],
        "a": [event[1] for event in events],
        "b": [event[2] for event in events],
        "c": [event[3] for event in events],
        "ops": segment.ops,
        "inputs": {str(block): numbers for block, numbers in segment.inputs.items()},
    }


def _state(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    parts = step.whole(optimizer)
    return list(tensors([list(part.state.values()) for part in parts]))


def _anonymous(segment: Segment) -> list[tuple[int, int]]:
    """Return the log without ids: what happens, and of what size."""
    return [(code, 0 if code == PACK else b) for code, _, b, _ in segment.events]


def _births(segment: Segment, without: set[int] | None = None) -> list[int]:
    kept = without or set()
    return [b for code, a, b, _ in segment.events if code == ALLOC and a not in kept]


def _versions() -> dict[str, str]:
    from importlib import metadata

    found = {}
    for name in ("torch", "transformers", "timm", "diffusers"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
