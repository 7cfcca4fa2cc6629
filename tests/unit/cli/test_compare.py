"""Two plans side by side on the command line."""

import json

from trainwright.data import resources

PLAN = """\
trainwright: 1
name: {name}
model: {{preset: gpt2}}
workload: {{task: full, effective_batch: 32, inputs: {{sequence_length: 512}}}}
machine: {{gpus: [{{id: {gpu}}}]{rest}}}
settings: {{precision: fp16-mixed, micro_batch: 8}}
"""


def two(plan_file, first, second, rest=""):
    return tuple(
        plan_file(PLAN.format(name=gpu, gpu=gpu, rest=rest), name=f"{gpu}.plan.yaml")
        for gpu in (first, second)
    )


def test_machines_of_two_makers_stand_in_columns(inside, plan_file):
    first, second = two(plan_file, "rtx-4090", "rx-7900-xtx")
    shown = inside("estimate", first, "--compare", second)
    assert shown.code == 0
    for words in ("GeForce RTX 4090", "Radeon RX 7900 XTX", "ROCm", "Samples per second"):
        assert words in shown.out
    assert "times as fast" in shown.out
    assert "\\n" not in shown.out, "name and GPU are two lines of a heading"


def test_scripts_get_one_object_with_both_reports(inside, plan_file):
    first, second = two(plan_file, "rtx-4090", "rtx-3060-12gb")
    answer = json.loads(inside("estimate", first, "--compare", second, "--json").out)
    names = [plan["name"] for plan in answer["plans"]]
    assert names == ["rtx-4090", "rtx-3060-12gb"]
    rates = [plan["time"]["samples_per_second"] for plan in answer["plans"]]
    assert rates[0] > rates[1]
    alone = json.loads(inside("estimate", first, "--json").out)
    assert {**answer["plans"][0]}.items() >= alone.items()


def test_training_and_serving_are_not_called_faster_or_slower(inside):
    examples = ("llama-8b-lora", "llama-8b-serve-rtx4090")
    first, second = (str(resources("examples", f"{name}.plan.yaml")) for name in examples)
    shown = inside("estimate", first, "--compare", second)
    assert "times as fast" not in shown.out
    assert "do different work" in shown.out
    assert "One optimizer step" in shown.out
    assert "One round of requests" in shown.out


def test_overrides_hold_for_both(inside, plan_file):
    first, second = two(plan_file, "rtx-4090", "rtx-3060-12gb")
    outcome = inside(
        *("estimate", first, "--compare", second, "--json"), "--set", "settings.micro_batch=4"
    )
    plans = json.loads(outcome.out)["plans"]
    assert [plan["settings"]["micro_batch"] for plan in plans] == [4, 4]


def test_a_machine_that_pytorch_does_not_know_is_an_honest_no(inside, plan_file):
    first, second = two(plan_file, "rtx-4090", "rx-6800-xt", rest=", system: windows")
    outcome = inside("estimate", first, "--compare", second)
    assert outcome.code == 1
    assert "Not supported by PyTorch on Windows" in " ".join(outcome.out.split())
    alone = inside("estimate", second)
    assert alone.code == 1
    assert "Not supported by PyTorch on Windows" in alone.out


def test_the_plan_that_is_wrong_is_named(inside, plan_file):
    first, second = two(plan_file, "rtx-4090", "rtx-9999")
    outcome = inside("estimate", first, "--compare", second)
    assert outcome.code == 2
    assert "rtx-9999.plan.yaml" in outcome.err
