"""Why each free setting has its value, with this model's numbers and what would flip it."""

from collections.abc import Callable, Iterable, Iterator

from trainwright.advise import loading, space
from trainwright.advise.advice import SAME, Reason, reason
from trainwright.advise.search import Search
from trainwright.advise.sharing import SHARDING_SOURCE, alternative, faster_shares, served, shares
from trainwright.advise.space import Candidate
from trainwright.advise.walk import Timed
from trainwright.catalog import GpuRecord
from trainwright.catalog.precision import multiplies_faster
from trainwright.estimate.time.compiling import SOURCE as COMPILING
from trainwright.estimate.time.compiling import compiling
from trainwright.estimate.time.compiling import verdict as compiling_verdict
from trainwright.messages import Message
from trainwright.plan.report import Report
from trainwright.workload.settings import Effect, effect

_ESTIMATE = "estimate"
_ALONE = "torchtune: full_finetune_single_device, dtype"
_MPS = "pytorch #139390, #142397, #175804; transformers #40458; karpathy/nanochat #685, M4 Max"
_CAPABILITY = {
    "NVIDIA": "NVIDIA CUDA programming guide, arithmetic by compute capability; stas00, dtype",
    "AMD": "AMD, instruction set guides of CDNA and RDNA; stas00, dtype",
    "Intel": "Intel, data sheets of Xe2 and XMX; stas00, dtype",
    "Apple": _MPS,
}

_USUAL = {"ollama": "ollama.com: library", "llama.cpp": "llama.cpp: tools/server/README.md"}
"""Where engines say which weights they take without being asked."""
_NAN = "ultralytics, pull request 17977; pytorch, issue 77955"
"""Who found that convolutions in fp16 return NaN on some chips."""
_MUCH = 0.1
"""Share of a step that compiling has to save to be named first; assumed."""


def reasons(search: Search, best: Timed, report: Report) -> tuple[Reason, ...]:
    """Return a reason for each setting that the plan leaves free, as far as times are known."""
    timed, found = report.time.refusal is None, list[Reason]()
    for key, explain in (_SEARCHED if timed else _UNTIMED).items():
        if key not in search.held:
            found.extend(explain(search, best, report))
    found.extend(_by_rule(search, report))
    if timed and search.plan.settings.compile is None:
        found.extend(_compile(search, best, report))
    return tuple(found)


def slower(timed: Timed, than: Timed) -> float:
    """Return how much longer a step takes, as a ratio: 0.25 for a quarter more."""
    return timed.seconds / than.seconds - 1


def _precision(search: Search, best: Timed, _report: Report) -> Iterator[Reason]:
    value = best.candidate.precision
    record = search.facts.machine.gpu.record
    gpu, source = record.name, _CAPABILITY[record.vendor]
    if effect("precision", value) is Effect.DIFFERENT and best.candidate.effect:
        mixed = Message.of("advise.flip.memory-precision")
        yield reason("precision", value, "advise.precision.alone", _ALONE, mixed, value=value)
        return
    if _on_mps(search) and value in ("bf16-mixed", "fp16-mixed"):
        yield reason("precision", value, f"advise.precision.mps-{value}", _MPS, None, gpu=gpu)
        return
    others = [
        other
        for name in ("fp32", "tf32", "bf16-mixed", "fp16-mixed")
        if name != value
        and (other := search.alike(best.candidate, precision=name))
        and other.seconds != best.seconds  # as TF32 on GPUs without it
    ]
    flips = None
    if value == "fp16-mixed" and record.vendor == "NVIDIA":
        bad = record.chip in space.NAN_CHIPS
        flips = Message.of("advise.flip.nan" if bad else "advise.flip.bf16-gpu")
        source = f"{source}; {_NAN}" if bad else source
    if value == "fp32" and space.turns_to_nan(search.facts.profile, record):
        yield reason("precision", value, "advise.precision.fp32-nan", _NAN, None, gpu=gpu)
        return
    if not others:
        plain = value == "fp16-mixed" and not multiplies_faster(record, value)
        id = f"advise.precision.{value}{'-vector' if plain else ''}"
        yield reason("precision", value, id, source, flips, gpu=gpu)
        return
    other = others[0]
    gain = other.seconds / best.seconds
    if value in ("bf16-mixed", "bf16") and gain > 1 and search.plan.workload.trains:
        flips = Message.of("advise.flip.diverges", other=other.candidate.precision, factor=gain)
    yield reason(
        "precision",
        value,
        _compared(record, value, gain),
        source,
        flips,
        gpu=gpu,
        value=value,
        other=other.candidate.precision,
        factor=gain,
    )


def _on_mps(search: Search) -> bool:
    return search.facts.machine.gpu.record.vendor == "Apple"


def _by_engine(search: Search) -> bool:
    """Return whether an engine serves, with kernels and a memory pool of its own."""
    return search.facts.settings.engine != "transformers"


def _compared(record: GpuRecord, value: str, gain: float) -> str:
    """Return the sentence on the next precision, which takes ``gain`` times as long."""
    if gain <= 1:
        return "advise.precision.only-fits"
    units = record.vendor == "NVIDIA" and multiplies_faster(record, value)
    return "advise.precision.faster" if units else "advise.precision.faster-elsewhere"


def _strategy(search: Search, best: Timed, _report: Report) -> Iterator[Reason]:
    count = search.facts.machine.gpu_count
    if count < 2 or not search.plan.workload.trains:
        return
    value = best.candidate.strategy
    if value == "pp":  # the reason for its stages says it
        return
    if value == "fsdp2":
        yield from shares(search, best, count)
        return
    other_name = "single" if value == "ddp" else "ddp"
    share = (search.plan.workload.effective_batch or 1) // (count if value == "single" else 1)
    rival = next(iter(search.holding(strategy=other_name)), None)
    if rival is None:
        yield reason("strategy", value, "advise.strategy.only", _ESTIMATE, None, share=share)
        return
    gain = rival.seconds / best.seconds
    flips = Message.of("advise.flip.link") if value == "single" or gain < 0.9 * count else None
    flips = faster_shares(search, best) or flips
    id = "advise.strategy.kept" if value == "ddp" and gain < 1 else f"advise.strategy.{value}"
    if id == "advise.strategy.ddp" and len(search.facts.machine.gpus) > 1:
        id = "advise.strategy.ddp-mixed"
    gpu = search.facts.machine.gpu.record.name
    yield reason("strategy", value, id, _ESTIMATE, flips, gpus=count, factor=gain, gpu=gpu)


def _shard_degree(search: Search, best: Timed, _report: Report) -> Iterator[Reason]:
    own, known = best.candidate.shard_degree, search.obedient.space.open["shard_degree"]
    other = next((one for one in known if one != own), None)
    if len(known) < 2 or (rival := search.alike(best.candidate, shard_degree=other)) is None:
        return
    gpus = search.facts.machine.gpu_count
    values = {"gpus": gpus, "each": own or other, "cost": slower(rival, best)}
    id = "all" if own is None else "copies"
    if own is None and not search.may_fit(rival.candidate):
        id = "fits"
        values |= {"need": search.peak(rival.candidate), "room": search.room(rival.candidate)}
    yield reason(
        "shard_degree", own or gpus, f"advise.shard-degree.{id}", SHARDING_SOURCE, None, **values
    )


def _tensor_degree(search: Search, best: Timed, _report: Report) -> Iterator[Reason]:
    yield from served(search, best)


def _batch(search: Search, best: Timed, _report: Report) -> Iterator[Reason]:
    chosen = best.candidate
    if not search.plan.workload.trains:
        return
    yield _micro_batch(search, best)
    yield reason(
        "accumulation",
        chosen.accumulation,
        f"advise.accumulation.{'groups' if search.settings(chosen).together > 1 else 'exact'}",
        "stas00, training performance; token-mean loss makes it equivalent",
        Message.of("advise.flip.batch-norm") if _has_batch_norm(search, chosen) else None,
        micro=chosen.micro_batch,
        accumulation=chosen.accumulation,
        gpus=search.ranks(chosen),
        effective=chosen.micro_batch * chosen.accumulation * search.ranks(chosen),
    )


def _micro_batch(search: Search, best: Timed) -> Reason:
    micro = best.candidate.micro_batch
    following = _next_larger(search, best)
    if following is None:
        id = "advise.micro.whole" if micro > 1 else "advise.micro.one"
        return reason("micro_batch", micro, id, _ESTIMATE, None, micro=micro)
    if following.seconds >= best.seconds:
        return reason(
            "micro_batch",
            micro,
            "advise.micro.fastest",
            _ESTIMATE,
            None,
            micro=micro,
            following=following.candidate.micro_batch,
        )
    saved = 1 - following.seconds / best.seconds
    more = following.candidate.micro_batch
    gain = "" if saved >= SAME else "-same"
    flips = Message.of(f"advise.flip.memory-batch{gain}", following=more, saved=saved)
    values: dict[str, float] = {"micro": micro, "following": more}
    if search.may_fit(following.candidate):  # only its replay says that it does not fit
        report = search.report(following.candidate)
        need, room = report.memory.device_used_p95.value, report.memory.device_total.value
        id = "edge" if report.fits else "replayed"
    else:
        need, room = search.least(following.candidate), search.room(following.candidate)
        id = "largest"
    values |= {"need": need, "room": room}
    return reason("micro_batch", micro, f"advise.micro.{id}", _ESTIMATE, flips, **values)


def _next_larger(search: Search, best: Timed) -> Timed | None:
    """Return the candidate with the next larger micro-batch and all else alike."""
    chosen = best.candidate
    pairs = space.batches(search.facts.settings, search.plan.workload, search.ranks(chosen))
    for micro, accumulation in sorted(pairs):
        if micro > chosen.micro_batch:
            return search.alike(chosen, micro_batch=micro, accumulation=accumulation)
    return None


def _checkpointing(search: Search, best: Timed, _report: Report) -> Iterator[Reason]:
    value = best.candidate.checkpointing
    if not search.plan.workload.trains or len(search.obedient.space.open["checkpointing"]) < 2:
        return
    if value == "none":
        full = search.alike(best.candidate, checkpointing="full")
        if full is None:
            return
        yield reason(
            "checkpointing",
            value,
            "advise.checkpointing.off",
            _ESTIMATE,
            Message.of("advise.flip.less-memory"),
            freed=max(search.peak(best.candidate) - search.peak(full.candidate), 0),
            cost=slower(full, best),
        )
        return
    plain = search.alike(best.candidate, checkpointing="none", activation_offload=False)
    if plain is None:
        return
    need, room = search.peak(plain.candidate), search.room(plain.candidate)
    if search.may_fit(plain.candidate):
        yield reason(
            "checkpointing",
            value,
            "advise.checkpointing.saves",
            _ESTIMATE,
            Message.of("advise.flip.need-memory"),
            freed=max(need - search.peak(best.candidate), 0),
            cost=max(slower(best, plain), 0),
        )
        return
    rival = alternative(search, best, checkpointing="none")
    more = Message.of("advise.flip.memory-checkpointing", more=need - room)
    # Below it lacks a margin only. Above, a smaller micro-batch is the way, not more memory.
    flips = more if room < need <= 2 * room else None
    values = {
        "need": need,
        "room": room,
        "cost": slower(best, plain),
        "micro": best.candidate.micro_batch,
    }
    if need <= room:  # and the p95 is above what the device has
        yield reason("checkpointing", value, "advise.checkpointing.edge", _ESTIMATE, None, **values)
    elif rival is None:
        yield reason("checkpointing", value, "advise.checkpointing.on", _ESTIMATE, flips, **values)
    elif rival.seconds < best.seconds:  # it was passed over, for it leaves nothing free
        gain = 1 - rival.seconds / best.seconds
        id = "advise.checkpointing.leaves"
        yield reason("checkpointing", value, id, _ESTIMATE, flips, gain=gain)
    else:
        values |= {"other": rival.candidate.micro_batch, "gain": slower(rival, best)}
        yield reason(
            "checkpointing", value, "advise.checkpointing.pays", _ESTIMATE, flips, **values
        )


def _optimizer(search: Search, best: Timed, report: Report) -> Iterator[Reason]:
    if not search.plan.workload.trains:
        return
    value = best.candidate.optimizer
    aside = report.memory.host.parts if report.memory.host is not None else ()
    terms = (*report.memory.terms, *aside)
    state = sum(term.value for term in terms if term.role in ("optimizer", "host-state"))
    flips: Message | None = Message.of("advise.flip.memory-optimizer")
    if value == "adamw-8bit" and best.candidate.effect:
        id, source = "advise.optimizer.eight-bit", "Dettmers et al. 2022 (arXiv 2110.02861)"
    elif value != "adamw" and best.candidate.effect:
        id, source = "advise.optimizer.smaller", "Shazeer and Stern 2018 (arXiv 1804.04235)"
    else:
        moved = any(term.role == "host-state" for term in aside)
        id = f"advise.optimizer.{'aside' if moved else 'default'}"
        source, flips = "Loshchilov and Hutter 2019", None
    yield reason("optimizer", value, id, source, flips, value=value, state=state)


def _optimizer_offload(search: Search, best: Timed, report: Report) -> Iterator[Reason]:
    if best.candidate.optimizer_offload == "cpu":
        host = report.memory.host.value if report.memory.host is not None else 0.0
        source = "torchao 0.18: optim/cpu_offload.py"
        flips = Message.of("advise.flip.memory-optimizer")
        yield reason(
            "optimizer_offload", "cpu", "advise.optimizer-offload.cpu", source, flips, host=host
        )


def _cross_entropy(search: Search, best: Timed, _report: Report) -> Iterator[Reason]:
    value = best.candidate.cross_entropy
    name = {"full": "chunked", "chunked": "full"}.get(value)  # others come with the recipe
    other = search.alike(best.candidate, cross_entropy=name) if name is not None else None
    if other is None:
        return
    whole, parts = (best, other) if value == "full" else (other, best)
    freed = search.peak(whole.candidate) - search.peak(parts.candidate)
    source = "torchtune: CEWithChunkedOutputLoss"
    flips = Message.of("advise.flip.less-memory") if value == "full" else None
    cost = max(slower(parts, whole), 0)
    id = f"advise.cross-entropy.{value}"
    if value == "full" and freed <= 0:  # the peak is in a phase that has no scores
        id, flips = "advise.cross-entropy.elsewhere", None
    values = {"freed": max(freed, 0), "more": max(-freed, 0), "cost": cost}
    yield reason("cross_entropy", value, id, source, flips, **values)


def _activation_offload(search: Search, best: Timed, _report: Report) -> Iterator[Reason]:
    stays = search.alike(best.candidate, activation_offload=False)
    if not best.candidate.activation_offload or stays is None:
        return
    freed = max(search.peak(stays.candidate) - search.peak(best.candidate), 0)
    id, source = "advise.activation-offload.on", "torch.autograd.graph.save_on_cpu"
    cost = max(slower(best, stays), 0)
    yield reason("activation_offload", True, id, source, None, freed=freed, cost=cost)


def _attention(search: Search, best: Timed, _report: Report) -> Iterator[Reason]:
    profile = search.profile(best.candidate)
    if profile is None or not profile.kernels or _by_engine(search):
        return
    value = best.candidate.attention
    source = "torch: scaled_dot_product_attention; Dao et al. 2022 (arXiv 2205.14135)"
    kernel = max(profile.kernels, key=profile.kernels.__getitem__)
    if _on_mps(search):
        yield reason("attention", value, "advise.attention.mps", source, None, kernel=kernel)
        return
    eager = search.alike(best.candidate, attention="eager")
    if value != "eager" and eager is not None:
        yield reason(
            "attention",
            value,
            "advise.attention.measured",
            source,
            None,
            kernel=kernel,
            cost=slower(eager, best),
            more=max(search.peak(eager.candidate) - search.peak(best.candidate), 0),
        )
        return
    id = "advise.attention.math" if kernel == "math" else "advise.attention.default"
    yield reason("attention", value, id, source, None, kernel=kernel)


def _switch(setting: str, source: str) -> Callable[[Search, Timed, Report], Iterator[Reason]]:
    """Return what says why a setting is on or off, by what the other would cost."""
    area = f"advise.{setting.replace('_', '-')}"

    def explain(search: Search, best: Timed, _report: Report) -> Iterator[Reason]:
        value = getattr(best.candidate, setting)
        other = search.alike(best.candidate, **{setting: not value})
        if other is not None:
            id = f"{area}.{'on' if value else 'off'}"
            yield reason(setting, value, id, source, None, cost=slower(other, best))

    return explain


def _allocator(search: Search, best: Timed, _report: Report) -> Iterator[Reason]:
    if search.facts.machine.gpu.record.vendor != "NVIDIA" or _by_engine(search):
        return  # CUDA's allocator alone has expandable segments
    value = best.candidate.allocator
    source = "torch: CUDA memory management notes"
    flips = Message.of("advise.flip.fragmentation") if value == "native" else None
    yield reason("allocator", value, f"advise.allocator.{value}", source, flips)


_SEARCHED = {
    "precision": _precision,
    "strategy": _strategy,
    "shard_degree": _shard_degree,
    "tensor_degree": _tensor_degree,
    "batch": _batch,
    "checkpointing": _checkpointing,
    "optimizer": _optimizer,
    "optimizer_offload": _optimizer_offload,
    "cross_entropy": _cross_entropy,
    "activation_offload": _activation_offload,
    "attention": _attention,
    "expanded_heads": _switch("expanded_heads", "torch: sdp_utils.cpp, grouped heads"),
    "channels_last": _switch("channels_last", "timm benchmark rows, RTX 3090"),
    "allocator": _allocator,
}


_UNTIMED = {"optimizer": _optimizer, "allocator": _allocator}
"""Of them, those that need no time of a step."""


def _compile(search: Search, best: Timed, _report: Report) -> Iterator[Reason]:
    """Yield what compiling would cost and gain in this run; the search leaves it off."""
    profile = search.profile(best.candidate)
    if profile is None or not search.plan.workload.trains:
        return
    settings = search.settings(best.candidate)
    if _on_mps(search):
        source = "PyTorch 2.7 release notes: Inductor for MPS, a prototype"
        yield reason("compile", settings.compile, "advise.compile.mps", source, None)
        return
    found = compiling(search.clock(best.candidate), profile, settings, best.candidate.micro_batch)
    ending, values = compiling_verdict(found, search.plan.workload)
    flips = Message.of("advise.flip.compile") if ending in ("pays", "after") else None
    yield reason(
        "compile", settings.compile, f"advise.compile.{ending}", COMPILING, flips, **values
    )


def worth_compiling(found: Iterable[Reason]) -> Iterator[Message]:
    """Yield that this run should be tried compiled, where its reason says that it pays and much."""
    for because in (each.because for each in found):
        if because.id == "advise.compile.pays" and because.values["gain"] >= _MUCH:
            yield Message.of("advise.worth-compiling", **because.values)


def _by_rule(search: Search, report: Report) -> Iterator[Reason]:
    """Yield reasons for what follows from rules and is not searched."""
    base, given = search.facts.settings, search.plan.settings
    trains = search.plan.workload.trains
    if given.quantization is None:
        id = "nf4" if base.quantization == "nf4" else "none" if trains else "none-serving"
        source, values = "Dettmers et al. 2023 (arXiv 2305.14314)", dict[str, str]()
        if base.quantization == "q4_k_m":
            id, source = base.engine, _USUAL[base.engine]
        elif not trains and base.quantization == "mxfp4":
            id, source, values = "published", "the model's card", {"format": base.quantization}
        message = f"advise.quantization.{id}"
        yield reason("quantization", base.quantization, message, source, None, **values)
    if given.compile is None and not trains and not _by_engine(search):
        yield reason("compile", base.compile, "advise.compile.serving", COMPILING, None)
    if trains:
        yield from loading.reasons(search, report)


def _has_batch_norm(search: Search, candidate: Candidate) -> bool:
    profile = search.profile(candidate)
    return profile is not None and any("batch_norm" in name for name in profile.ops.name)
