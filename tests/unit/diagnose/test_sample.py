"""The look at one step: what an operator takes, and its arithmetic by torch's own count."""

import json
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from typing import Any

import pytest

from trainwright.diagnose.recorder import facts
from trainwright.diagnose.recorder import sample as sample
from trainwright.diagnose.recorder.clock import Times

MS = 1_000_000


@dataclass(frozen=True)
class Event:
    """An event as torch's profiler gives it; times in milliseconds."""

    label: str
    start: float
    end: float
    sizes: tuple[tuple[int, ...], ...] = ()
    thread: int = 1

    def name(self) -> str:
        return self.label

    def start_ns(self) -> int:
        return int(self.start * MS)

    def end_ns(self) -> int:
        return int(self.end * MS)

    def duration_ns(self) -> int:
        return self.end_ns() - self.start_ns()

    def start_thread_id(self) -> int:
        return self.thread

    def shapes(self) -> list[list[int]]:
        return [list(size) for size in self.sizes]


def described(*events: Event, wall: float = 0.1) -> dict[str, Any]:
    return sample.described(events, wall)


def test_an_operator_counts_for_itself_and_not_for_those_that_it_calls() -> None:
    found = described(
        Event("aten::linear", 0, 40),
        Event("aten::t", 1, 2),
        Event("aten::addmm", 3, 39),
        Event("aten::relu", 50, 60),
    )
    assert found["kernels_a_step"] == 2  # linear calls, and a transposed view computes nothing
    assert [row["name"] for row in found["top"]] == ["aten::addmm", "aten::relu"]
    assert [row["share"] for row in found["top"]] == pytest.approx([0.36, 0.1])


def test_an_operator_that_computes_after_it_has_called_another_is_named() -> None:
    found = described(Event("aten::sum", 0, 40), Event("aten::copy_", 1, 25))
    assert {row["name"]: row["share"] for row in found["top"]} == pytest.approx(
        {"aten::copy_": 0.24, "aten::sum": 0.16}
    )


def test_operators_of_two_threads_do_not_call_each_other() -> None:
    found = described(Event("aten::mm", 0, 40, thread=1), Event("aten::bmm", 10, 30, thread=2))
    assert {row["name"]: row["share"] for row in found["top"]} == pytest.approx(
        {"aten::mm": 0.4, "aten::bmm": 0.2}
    )


def test_what_makes_batches_is_no_part_of_the_step() -> None:
    loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    found = described(Event(loader, 0, 30), Event("aten::stack", 5, 25), Event("aten::mm", 40, 50))
    assert [row["name"] for row in found["top"]] == ["aten::mm"]


def test_a_step_without_operators_says_nothing() -> None:
    assert described(Event("ProfilerStep#1", 0, 10)) == {}
    assert described() == {}


def test_collectives_are_hidden_as_far_as_something_is_computed_meanwhile() -> None:
    found = described(
        Event("gloo:all_reduce", 20, 60, thread=2),
        Event("aten::mm", 0, 30),
        Event("aten::mm", 50, 70),
    )
    assert found["communication"] == pytest.approx(0.4)
    assert found["communication_hidden"] == pytest.approx(0.5)


def test_a_softmax_over_positions_is_attention_and_one_over_classes_is_not() -> None:
    scores = Event("aten::_softmax", 0, 10, ((2, 8, 128, 128),))
    classes = Event("aten::_softmax", 0, 10, ((32, 1000),))
    assert described(scores)["_setup"] == {"attention": "eager"}
    assert described(scores)["attention_eager"] == pytest.approx(0.1)
    assert described(classes)["_setup"] == {}
    fused = Event("aten::_scaled_dot_product_flash_attention_for_cpu", 0, 10)
    assert described(fused)["_setup"] == {"attention": "sdpa"}


PROGRAM = """
import json, sys, torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
from trainwright.diagnose.recorder import sample as sample

net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 8, 3, stride=2),
                    nn.Flatten(), nn.Linear(8 * 7 * 7, 64), nn.ReLU(), nn.Linear(64, 8))
x = torch.randn(4, 3, 16, 16, requires_grad=True)
def step():
    net(x).square().mean().backward()

with FlopCounterMode(display=False) as counter:
    step()
look = sample.Sample()
look.start()
step()
look.stop()
found = look.told()
q, k = torch.randn(2, 4, 32, 8), torch.randn(2, 4, 64, 8)
look.start()
nn.functional.scaled_dot_product_attention(q, k, k)
look.stop()
attention = look.told()
cell = nn.LSTM(8, 16, num_layers=1, batch_first=False)
look.start()
with torch.no_grad():
    cell(torch.randn(10, 4, 8))
look.stop()
recurrent = look.told()
print(json.dumps({"torch": counter.get_total_flops(), "ours": found["flops_a_step"],
                  "attention": attention["flops_a_step"], "on": look.on,
                  "recurrent": recurrent["flops_a_step"], "rate": sample.matrix_rate()}))
"""


@pytest.mark.slow
def test_the_arithmetic_of_a_step_is_what_torch_counts() -> None:
    """The input asks for its gradient: without that a first convolution is counted too high."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    found = json.loads(done.stdout)
    assert found["ours"] == pytest.approx(found["torch"], rel=0.02)
    assert found["attention"] == pytest.approx(2 * 2 * (2 * 4) * 32 * 64 * 8)  # scores, then values
    by_hand = 2 * 10 * 4 * (4 * 16 * 8 + 4 * 16 * 16)  # steps, samples, both weights
    assert found["recurrent"] == pytest.approx(by_hand, rel=0.01)
    assert found["rate"] > 1e8
    assert found["on"] is False


DISTURBED = """
import json, torch
from trainwright.diagnose.recorder import sample as sample

look, few, many = sample.Sample(), torch.rand(64, 64), torch.rand(1500, 1500)
for disturbed in (False, True, False):
    look.start()
    few @ few
    if disturbed:
        many.exp()
    look.stop()
print(json.dumps([row["name"] for row in look.told()["top"]] + [look.told() == {}]))
"""


@pytest.mark.slow
def test_one_step_that_is_disturbed_does_not_say_what_a_step_takes() -> None:
    done = subprocess.run(
        [sys.executable, "-c", DISTURBED], capture_output=True, text=True, check=True
    )
    names = json.loads(done.stdout)
    assert "aten::mm" in names
    assert "aten::exp" not in names
    assert names[-1] is True  # told once


def test_parts_of_steps_are_means_and_never_less_than_nothing() -> None:
    times = Times()
    times.add(1.0, 0.2, 0.1, blocked=0.3)
    times.add(3.0, 0.6, 0.3, blocked=0.1)
    found = times.summary({"communication": 0.8})
    assert (found["steps"], found["seconds"]) == (2, 2.0)
    assert found["data_wait"] == pytest.approx(0.4)
    assert found["communication"] == pytest.approx(0.4)
    assert found["compute"] == pytest.approx(2.0 - 0.4 - 0.2 - 0.4)
    assert times.blocked == pytest.approx(0.4)
    assert times.summary({"transfer": 99.0})["compute"] == 0.0


BATCHES = """
import json, torch
from trainwright.diagnose.recorder.batch import batch_facts

words = torch.randint(2, 900, (8, 64))
words[:, 32:] = 0
words[0] = torch.randint(2, 900, (64,))
sounds = torch.rand(4, 100, 20)
sounds[:, 25:] = 0
pictures = torch.zeros(4, 3, 32, 32)
print(json.dumps([batch_facts(each) for each in (
    {"input_ids": words, "labels": torch.ones(8)}, [sounds, torch.arange(4)], (pictures, None),
    torch.randint(2, 900, (8, 64)), [torch.rand(8, 64)], "text", {}, [], torch.ones(0, 64).long(),
)]))
"""


@pytest.mark.slow
def test_what_fills_rows_up_is_told_from_what_is_trained_on() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BATCHES], capture_output=True, text=True, check=True
    )
    words, sounds, pictures, whole, *rest = json.loads(done.stdout)
    assert words["sequence_padding"] == pytest.approx(7 / 8 * 0.5)
    assert sounds["sequence_padding"] == pytest.approx(0.75)
    assert whole["sequence_padding"] < 0.05
    assert pictures == {}
    assert rest == [{}, {}, {}, {}, {}]


@pytest.mark.parametrize(
    ("parameters", "precision"),
    [("float64", "fp64"), ("complex128", "fp64"), ("complex64", "fp32"), ("bfloat16", "bf16")],
)
def test_the_precision_is_that_of_the_parameters_complex_or_not(
    parameters: str, precision: str
) -> None:
    setup = facts.settled({"_device": "cpu", "_dtype": f"torch.{parameters}"})
    assert setup["precision"] == precision
