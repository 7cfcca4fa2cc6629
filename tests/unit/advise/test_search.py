"""The search is exact, keeps the effective batch, and gives in to nothing that is fixed."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainwright.advise import Advice, advise, make_it_fit
from trainwright.advise.choose import STORED
from trainwright.advise.search import Search
from trainwright.advise.taking import with_settings
from trainwright.data import resources
from trainwright.messages import render
from trainwright.plan.evaluate import Facts, resolve
from trainwright.plan.file import read
from trainwright.plan.schema import Plan
from trainwright.workload import FullSettings

PRECISIONS = ("bf16-mixed", "tf32", "fp32")
CHECKPOINTINGS = ("none", "every-8", "every-6", "every-4", "every-3", "every-2", "full")
FIXED = {"optimizer": "adamw"}


def divisors(number: int) -> list[int]:
    return [micro for micro in range(1, number + 1) if number % micro == 0]


def best(advice: Advice) -> FullSettings:
    return advice.choices[0].settings


def advised(case: Any, top: int = 5) -> Advice:
    return advise(case.plan, case.facts, top=top, sources=case.sources)


SMALL = {"blocks": 12, "hidden": 256, "wide": 1024, "head": 8_000}
WIDE = {"blocks": 12, "hidden": 2048, "wide": 8192, "head": 32_000}
VOCABULARY = {"blocks": 12, "hidden": 512, "wide": 2048, "head": 128_000}
VISION = {"blocks": 16, "hidden": 4096, "wide": 16384, "head": 1000, "tokens": False}
PAIRS = [
    *product(("rtx-4090", "rtx-3060-12gb", "a100-40gb"), ("small", "wide", "vocabulary")),
    *product(("rtx-3080", "rtx-5090", "h100-80gb"), ("vision",)),
]
SHAPES = {"small": SMALL, "wide": WIDE, "vocabulary": VOCABULARY, "vision": VISION}


@pytest.mark.slow
@pytest.mark.parametrize(("gpu", "model"), PAIRS)
def test_the_first_choice_is_the_fastest_of_all_that_fit_with_headroom(
    make_case: Any, evaluated: Any, gpu: str, model: str
) -> None:
    batch = 24 if model != "vision" else 48
    shape = SHAPES[model]
    case = make_case(gpu, shape, batch=batch, length=1024, settings=FIXED)
    everything = [
        (report.time.step_seconds.value, report)
        for precision, micro, checkpointing, attention, allocator in product(
            PRECISIONS, divisors(batch), CHECKPOINTINGS, ("sdpa", "eager"), ("native", "expandable")
        )
        if (
            report := evaluated(
                case,
                precision=precision,
                micro_batch=micro,
                accumulation=batch // micro,
                checkpointing=checkpointing,
                attention=attention,
                allocator=allocator,
            )
        )
    ]
    assert len(everything) >= 500
    fitting = [seconds for seconds, report in everything if report.roomy]
    advice = advised(case)
    assert advice.considered >= len(everything)
    if not fitting:
        assert not advice.choices
        return
    first = advice.choices[0].estimate
    assert first.roomy
    assert first.time.step_seconds.value == pytest.approx(min(fitting), rel=1e-12)


def test_the_effective_batch_is_kept_exactly(make_case: Any) -> None:
    for batch, count in ((48, 1), (7, 1), (96, 2)):
        case = make_case(batch=batch, count=count)
        for choice in advised(case).choices:
            chosen = choice.settings
            gpus = count if chosen.strategy != "single" else 1
            copies = gpus // (chosen.pipeline_stages or 1)
            assert chosen.micro_batch * chosen.accumulation * copies == batch


def test_what_the_plan_fixes_stays(make_case: Any) -> None:
    fixed = {"precision": "fp32", "micro_batch": 3, "checkpointing": "full", "attention": "eager"}
    case = make_case(settings=fixed)
    for choice in advised(case).choices:
        assert {key: getattr(choice.settings, key) for key in fixed} == fixed
        assert not set(fixed) & {reason.setting for reason in choice.reasons}


def test_choices_are_ranked_and_differ_in_time(make_case: Any) -> None:
    case = make_case()
    times = [choice.estimate.time.step_seconds.value for choice in advised(case).choices]
    assert len(times) == 5
    assert times == sorted(set(times))


def test_ties_go_to_the_defaults(make_case: Any) -> None:
    chosen = best(advised(make_case("h100-80gb", batch=8)))
    assert (chosen.allocator, chosen.optimizer, chosen.checkpointing) == ("native", "adamw", "none")


def test_the_same_question_gets_the_same_answer(make_case: Any) -> None:
    case = make_case()
    first, second = (advised(case) for _ in range(2))
    assert [c.settings for c in first.choices] == [c.settings for c in second.choices]


def test_tensor_cores_are_used_where_there_are_any(make_case: Any) -> None:
    assert best(advised(make_case("rtx-4090"))).precision == "bf16-mixed"
    assert best(advised(make_case("rtx-2080-ti"))).precision == "fp16-mixed"
    assert best(advised(make_case("gtx-1080-ti"))).precision == "fp32"


@pytest.mark.parametrize(
    ("gpu", "precision", "version"),
    [("apple-m4-max", "bf16-mixed", "PyTorch 2.6"), ("apple-m1-max", "fp16-mixed", "PyTorch 2.8")],
)
def test_a_mac_trains_in_sixteen_bits_for_its_memory(
    make_case: Any, gpu: str, precision: str, version: str
) -> None:
    """Autocast on mps: bf16 from 2.6, fp16's GradScaler from 2.8; runs on M4 Max gain no speed."""
    advice = advised(make_case(gpu))
    choice = advice.choices[0]
    assert choice.settings.precision == precision
    reason = next(one for one in choice.reasons if one.setting == "precision")
    assert version in render(reason.because, "en")
    whole = " ".join(render(one.because, "en") for one in choice.reasons)
    for of_cuda in ("tensor cores", "takes its flash", "allocator", "about twice as fast", "save"):
        assert of_cuda not in whole
    assert not choice.settings.pin_memory
    assert "tf32" not in [choice.settings.precision for choice in advice.choices]


def test_checkpointing_is_taken_only_where_memory_is_short(make_case: Any) -> None:
    roomy = best(advised(make_case("h100-80gb", length=2048)))
    assert roomy.checkpointing == "none"
    fixed = {"micro_batch": 48, "precision": "bf16-mixed"}
    narrow = {"head": 1000}
    tight = advised(make_case("rtx-3060-12gb", narrow, length=2048, settings=fixed))
    assert best(tight).checkpointing != "none"


def test_another_update_rule_comes_after_the_same_one_in_fewer_bits(make_case: Any) -> None:
    shape = dict(blocks=12, hidden=2560, wide=10240)

    def optimizer(gpu: str, **shape: int) -> str:
        return best(advised(make_case(gpu, shape, length=128))).optimizer

    assert optimizer("rtx-3090", **shape) == "adamw"
    assert optimizer("rtx-3060-12gb", **shape) == "adamw-8bit"
    assert optimizer("rtx-3060-12gb", **(shape | {"blocks": 22})) == "adafactor"


def test_the_front_falls_in_memory_as_it_rises_in_time(make_case: Any) -> None:
    points = advised(make_case()).pareto
    assert len(points) > 5
    seconds = [point.step_seconds for point in points]
    peaks = [point.allocated_bytes for point in points]
    assert seconds == sorted(seconds)
    assert peaks == sorted(peaks, reverse=True)


def test_structures_that_were_not_traced_are_named(make_case: Any) -> None:
    notes = advised(make_case()).notes
    named = [
        render(value, "en")
        for note in notes
        if note.id == "advise.not-considered"
        for value in note.values["values"]
    ]
    assert named == ["precision: bf16"]


def test_optimizers_that_do_not_take_shares_are_named(make_case: Any) -> None:
    def left_out(gpus: int) -> set[str]:
        strategy = "fsdp2" if gpus > 1 else "single"
        notes = advised(make_case(count=gpus, settings={"strategy": strategy})).notes
        found = (note for note in notes if note.id == "advise.not-compared")
        return {value.id for note in found for value in note.values["values"]}

    assert left_out(2) - left_out(1) == {"advise.not-compared.sharded"}


def test_no_gpu_that_was_asked_for_is_left_idle(make_case: Any) -> None:
    wide = dict(blocks=4, hidden=4096, wide=16384)
    for gpu, shape, batch, length in (("rtx-4090", wide, 4, 64), ("h100-80gb", {}, 96, 2048)):
        found = best(advised(make_case(gpu, shape, batch=batch, length=length, count=2)))
        assert found.strategy != "single"


def test_making_it_fit_fills_only_free_keys(make_case: Any) -> None:
    case = make_case(settings={"precision": "fp32"})
    plan = make_it_fit(case.plan, advised(case))
    assert plan.settings == case.plan.settings
    assert plan.chosen["micro_batch"].value == best(advised(case)).micro_batch
    assert plan.workload == case.plan.workload
    assert plan.machine == case.plan.machine
    again = case.sources.resolve(plan)
    assert again is not None
    assert again.settings == best(advised(case))


@settings(max_examples=8)
@given(gib=st.floats(9, 60), more=st.floats(0, 40), length=st.sampled_from((128, 512, 2048)))
def test_more_memory_never_makes_it_slower(
    make_case: Any, gib: float, more: float, length: int
) -> None:
    case = make_case(length=length, settings=FIXED)

    def seconds(total: float) -> float:
        gpu = case.facts.machine.gpu
        larger = replace(gpu, total=replace(gpu.total, value=total * 2**30))
        machine = replace(case.facts.machine, gpus=(larger,))
        facts = replace(case.facts, machine=machine)
        advice = advise(case.plan, facts, top=1, sources=case.sources)
        choices = advice.choices
        return choices[0].estimate.time.step_seconds.value if choices else float("inf")

    assert seconds(gib + more) <= seconds(gib)


PLANS = st.fixed_dictionaries({
    "gpu": st.sampled_from(("rtx-3060-12gb", "rtx-4090", "a100-40gb")),
    "count": st.sampled_from((1, 2)),
    "length": st.sampled_from((128, 1024, 4096)),
    "batch": st.sampled_from((4, 24)),
    "settings": st.fixed_dictionaries({}, optional={
        "precision": st.sampled_from(("bf16-mixed", "fp32")),
        "checkpointing": st.sampled_from(("none", "full")),
        "optimizer": st.sampled_from(("adamw", "adafactor")),
        "cross_entropy": st.just("full"),
        "micro_batch": st.just(2),
    }),
})  # fmt: skip


@settings(max_examples=12)
@given(asked=PLANS, hidden=st.sampled_from((1024, 3072)))
def test_nothing_asked_for_or_fixed_changes_without_a_choice(
    make_case: Any, asked: dict[str, Any], hidden: int
) -> None:
    shape = {"hidden": hidden, "wide": 4 * hidden}
    gpu, count = asked["gpu"], asked["count"]
    rest = {key: asked[key] for key in ("batch", "length", "settings")}
    case = make_case(gpu, shape, count=count, **rest)
    advice = advised(case, top=1)
    fitted = make_it_fit(case.plan, advice)
    assert fitted.model_copy(update={"chosen": {}}) == case.plan
    assert not set(fitted.chosen) & set(asked["settings"])
    for way in advice.nothing_fits:
        assert changed(case.plan, way.plan) <= set(way.changes)


def changed(before: Plan, after: Plan) -> set[str]:
    """Dotted keys outside the choices that two plans have different."""

    def flat(value: Any, name: str) -> dict[str, Any]:
        if isinstance(value, list):
            value = {f"[{at}]": one for at, one in enumerate(value)}
        if not isinstance(value, dict):
            return {name: value}
        return {
            key: one
            for part, inner in value.items()
            for key, one in flat(inner, f"{name}.{part}".strip(".").replace(".[", "[")).items()
        }

    old, new = (
        flat(one.model_dump(mode="json", exclude={"chosen"}), "") for one in (before, after)
    )
    return {key for key in (*old, *new) if old.get(key) != new.get(key)}


@pytest.mark.parametrize("recipe", ["hf-trainer-4.46", "llama-factory", "trl-sft-0.9"])
@pytest.mark.parametrize("checkpointing", ["none", "full"])
def test_a_saved_choice_is_evaluated_with_the_settings_that_it_was_chosen_for(
    make_case: Any, recipe: str, checkpointing: str
) -> None:
    """These recipes set reentrant checkpointing by the checkpointing: another step."""
    case = make_case(settings={"recipe": recipe})
    search = Search(case.plan, case.facts, case.sources)
    timed = next(iter(search.holding(checkpointing=checkpointing)))
    chosen = search.settings(timed.candidate)
    again = case.sources.resolve(with_settings(case.plan, chosen))
    assert again is not None
    assert again.settings == chosen


def test_what_is_short_is_that_of_the_leanest_step_at_hand() -> None:
    """A loss in chunks that nobody traced hides no checkpointing."""
    changes = [f"settings.{name}=null" for name in ("micro_batch", "checkpointing")]
    plan = read(resources("examples", "llama-8b-lora.plan.yaml"), changes)
    facts = resolve(plan)
    assert isinstance(facts, Facts)

    def whole_loss(plan: Plan, facts: Facts, asked: FullSettings) -> Any:
        return STORED.find(plan, facts, asked) if asked.cross_entropy == "full" else None

    smallest = Search(plan, facts, replace(STORED, find=whole_loss)).smallest
    assert smallest is not None
    assert smallest.checkpointing == "full"


@pytest.mark.parametrize("gpus", [1, 2])
@pytest.mark.parametrize("recipe", ["llama-factory", "trl-sft"])
def test_a_step_that_was_not_traced_hides_none_below_it(
    make_case: Any, recipe: str, gpus: int
) -> None:
    """A recipe's plain step is another structure than its checkpointed one."""
    strategy = {1: "single", 2: "ddp"}[gpus]
    case = make_case(settings={"recipe": recipe, "strategy": strategy}, count=gpus)

    def checkpointed(plan: Plan, facts: Facts, asked: FullSettings) -> Any:
        known = asked.checkpointing != "none"
        return case.sources.find(plan, facts, asked) if known else None

    partly = advise(case.plan, case.facts, sources=replace(case.sources, find=checkpointed))
    whole = Search(case.plan, case.facts, case.sources)
    held = (whole.holding(checkpointing=one) for one in ("every-8", "full"))
    best = min((next(whole.best(walk))[0] for walk in held), key=lambda one: one.seconds)
    chosen, first = whole.settings(best.candidate), partly.choices[0].settings
    for key in ("checkpointing", "micro_batch", "precision", "optimizer"):
        assert getattr(first, key) == getattr(chosen, key)
    (note,) = (note for note in partly.notes if note.id == "advise.not-considered")
    assert "none" in [value.values["value"] for value in note.values["values"]]
