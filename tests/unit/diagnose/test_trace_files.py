"""Traces of torch.profiler: by torch itself, and by hand where a GPU would have to be there."""

import gzip
import json
import random

import pytest

from trainwright.diagnose import budget
from trainwright.diagnose.readers import chrome_trace, trace_stream
from trainwright.messages import UserError

GEMM = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >"
NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
COPY = "Memcpy HtoD (Pinned -> Device)"


def event(cat, name, ts, dur, tid=1, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur,
            "args": args}  # fmt: skip


def step(t, n):
    """A step of 10 ms: 4 loading, 1 copying, 3 multiplying, 1 communicating, 1 launching."""

    def launched(name, at, dur, stream, number):
        cat = "gpu_memcpy" if name == COPY else "kernel"
        call = "cudaMemcpyAsync" if name == COPY else "cudaLaunchKernel"
        correlation = 100 * n + number
        return [
            event("cuda_runtime", call, at - 5, 4, correlation=correlation),
            event(cat, name, at, dur, stream, correlation=correlation),
        ]

    return [
        event("user_annotation", LOADER, t, 4000),
        *launched(COPY, t + 4000, 1000, 7, 1),
        *launched(GEMM, t + 5000, 3000, 7, 2),
        *launched(NCCL, t + 7000, 2000, 20, 3),  # the first half is hidden
        event("cpu_op", "aten::add", t + 8990, 1000),
        event("user_annotation", "Optimizer.step#AdamW.step", t + 9990, 5),
    ]


def read(events, **head):
    text = json.dumps(head | {"traceEvents": events})
    return chrome_trace.read(iter([text[at : at + 1000] for at in range(0, len(text), 1000)]))


def shares(found):
    return {each.use: each.seconds for each in found.budget.shares}


def steps_of(count):
    events = [each for n in range(count) for each in step(n * 10_000, n)]
    random.Random(1).shuffle(events)
    return events


def test_each_moment_of_a_step_on_a_gpu_counts_once():
    found = read(steps_of(6))
    assert found.facts["steps"]["steps"] == 4  # the first is warm-up
    assert shares(found) == pytest.approx(
        {"input": 4e-3, "tensor-core": 3e-3, "transfer": 1e-3, "communication": 1e-3,
         "launch": 1e-3}, rel=0.02,
    )  # fmt: skip
    assert sum(shares(found).values()) == pytest.approx(found.budget.seconds)
    profile = found.facts["profile"]
    assert profile["communication_hidden"] == pytest.approx(0.5)
    assert profile["kernels_a_step"] == 3
    assert profile["tensor_core"] == pytest.approx(0.5, abs=0.01)


def test_a_long_silence_is_unknown_and_not_blamed_on_launching():
    quiet = [each for each in steps_of(6) if each["cat"] != "cpu_op"]
    held = shares(read([each for each in quiet if each["name"] != LOADER]))
    # 5 ms of each step, less the 1 ms that is left alone at the window's end.
    assert held["unknown"] == pytest.approx(4.75e-3, rel=0.01)
    assert "input" not in held


def test_work_that_the_host_queued_ahead_belongs_to_its_step():
    """The host runs a step ahead: its annotations end long before the device's work does."""
    events = []
    for n in range(8):
        host, device = n * 1000, n * 10_000 + 2000
        events += [
            event("cuda_runtime", "cudaLaunchKernel", host, 5, correlation=n),
            event("kernel", GEMM, device, 10_000, 7, correlation=n),
            event("user_annotation", "Optimizer.step#SGD.step", host + 500, 100),
        ]
    found = read(events)
    assert found.budget.seconds == pytest.approx(10e-3)
    assert shares(found)["tensor-core"] == pytest.approx(10e-3)


def test_the_head_names_gpu_and_group():
    head = {
        "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "computeMajor": 8,
                              "computeMinor": 0, "totalGlobalMem": 85 << 30}],
        "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8},
    }  # fmt: skip
    facts = read(steps_of(3), **head).facts
    assert facts["gpus"][0]["compute_capability"] == "8.0"
    assert facts["setup"] == {"device": "cuda", "backend": "nccl", "world_size": 8}


def test_without_anything_that_repeats_the_whole_is_divided():
    found = read(
        [event("cpu_op", "aten::conv2d", 0, 1000), event("user_annotation", LOADER, 2000, 400_000)]
    )
    assert not found.budget.of_step
    assert shares(found)["input"] == pytest.approx(0.4)


@pytest.mark.parametrize("packed", [False, True])
def test_a_trace_that_torch_wrote_sums_to_the_time_it_took(tmp_path, packed):
    torch = pytest.importorskip("torch")
    path = tmp_path / ("trace.json.gz" if packed else "trace.json")
    layer = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    data = torch.utils.data.TensorDataset(torch.randn(40, 64))
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        for (batch,) in torch.utils.data.DataLoader(data, batch_size=4):
            optimizer.zero_grad()
            layer(batch).sum().backward()
            optimizer.step()
    profiler.export_chrome_trace(str(path))
    with path.open("rb") as stream:
        found = chrome_trace.read(trace_stream.texts(stream))
    assert found.facts["steps"]["steps"] == 8  # ten, nine from end to end, less the first
    assert found.facts["setup"] == {"device": "cpu", "num_workers": 0}
    assert {"input", "optimizer", "matrix"} <= set(shares(found))
    assert sum(shares(found).values()) == pytest.approx(found.budget.seconds)
    table = profiler.key_averages()
    optimized = sum(each.cpu_time_total for each in table if each.key.startswith("Optimizer."))
    whole = found.budget.seconds * 10
    assert shares(found)["optimizer"] / found.budget.seconds == pytest.approx(
        optimized * 1e-6 / whole, abs=0.35
    )


def test_a_trace_that_is_cut_off_is_read_as_far_as_it_goes():
    text = json.dumps({"traceEvents": [e for n in range(6) for e in step(n * 10_000, n)]})
    found = chrome_trace.read(iter([text[:-200]]))
    assert "diagnose.file.cut-off" in [each.id for each in found.missed]
    assert found.budget.seconds == pytest.approx(10e-3)


@pytest.mark.parametrize(
    "text",
    [
        '{"traceEvents": []}',
        '{"other": 1}',
        '{"traceEvents": [1, null, "x", [], {}]}',
        '{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": "0", "dur": 1}]}',
        '{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": NaN, "dur": 1}]}',
        '{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1e300, "dur": 1}]}',
        '{"traceEvents": [{"ph": "X", "cat": "kernel", "name": {}, "ts": 1, "dur": -1}]}',
        '{"traceEvents": [nonsense',
    ],
)
def test_what_holds_no_events_is_refused(text):
    with pytest.raises(UserError):
        chrome_trace.read(iter([text]))


def test_a_damaged_or_endless_packed_trace_is_refused(tmp_path):
    path = tmp_path / "trace.json.gz"
    path.write_bytes(gzip.compress(b'{"traceEvents": [' + b" " * 4096)[:-9])
    with path.open("rb") as stream, pytest.raises(UserError, match="damaged"):
        list(trace_stream.texts(stream))
    path.write_bytes(gzip.compress(b" " * (3 << 20)))
    with path.open("rb") as stream, pytest.raises(UserError, match="unpacks"):
        list(trace_stream.texts(stream, limit=2 << 20))


def test_shares_that_exceed_the_step_by_rounding_are_scaled_and_the_rest_is_unknown():
    from trainwright.messages import Message

    source = Message.of("diagnose.budget.log")
    over = budget.divided(1.0, {"input": 0.6, "compute": 0.6}, source)
    assert [each.seconds for each in over.shares] == pytest.approx([0.5, 0.5])
    under = budget.divided(1.0, {"input": 0.6}, source)
    assert {each.use: each.seconds for each in under.shares} == {"input": 0.6, "unknown": 0.4}
