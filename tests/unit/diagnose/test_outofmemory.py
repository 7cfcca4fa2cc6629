"""Out-of-memory errors as people posted them, of many versions of torch; links beside them."""

from pathlib import Path

import pytest

from trainwright.diagnose.memory_remedies import help_for
from trainwright.diagnose.outofmemory import explain, from_file
from trainwright.messages import LANGUAGES, UserError, render

GIB = 1 << 30
MIB = 1 << 20
HINT = (
    " If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF="
    "expandable_segments:True to avoid fragmentation."
)
POSTED = {
    "github.com/pytorch/pytorch/issues/16417 (2.x: full)": (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 22.00 MiB. GPU 0 has "
        "a total capacity of 23.65 GiB of which 11.06 MiB is free. Including non-PyTorch memory, "
        "this process has 23.60 GiB memory in use. Of the allocated memory 22.90 GiB is allocated "
        "by PyTorch, and 194.87 MiB is reserved by PyTorch but unallocated." + HINT,
        "fragmentation",
    ),
    "github.com/kerrj/lerf/issues/73 (2.1: in pieces)": (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a "
        "total capacty of 23.65 GiB of which 1.66 GiB is free. Including non-PyTorch memory, this "
        "process has 20.81 GiB memory in use. Of the allocated memory 12.09 GiB is allocated by "
        "PyTorch, and 4.84 GiB is reserved by PyTorch but unallocated.",
        "fragmentation",
    ),
    "github.com/murong-xu/CADS/issues/4 (2.x: too big)": (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 22.78 GiB. GPU 0 has a "
        "total capacity of 31.47 GiB of which 12.73 GiB is free. Including non-PyTorch memory, "
        "this process has 18.73 GiB memory in use. Of the allocated memory 9.08 GiB is allocated "
        "by PyTorch, and 9.35 GiB is reserved by PyTorch but unallocated." + HINT,
        "too-big",
    ),
    "github.com/light-and-ray/sd-webui-replacer/issues/74 (asked for more than there is)": (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 27.12 GiB. GPU 0 has a "
        "total capacty of 11.99 GiB of which 0 bytes is free. Of the allocated memory 16.16 GiB is "
        "allocated by PyTorch, and 144.59 MiB is reserved by PyTorch but unallocated.",
        "too-big",
    ),
    "github.com/microsoft/unilm/issues/137 (1.4: full)": (
        "RuntimeError: CUDA out of memory. Tried to allocate 128.00 MiB (GPU 0; 11.17 GiB total "
        "capacity; 10.85 GiB already allocated; 24.81 MiB free; 10.86 GiB reserved in total by "
        "PyTorch)",
        "too-big",
    ),
    "github.com/rshaojimmy/MADDoG/issues/11 (1.x: in pieces)": (
        "RuntimeError: CUDA out of memory. Tried to allocate 2.87 GiB (GPU 0; 14.76 GiB total "
        "capacity; 8.77 GiB already allocated; 19.75 MiB free; 13.71 GiB reserved in total by "
        "PyTorch)",
        "fragmentation",
    ),
    "github.com/pytorch/pytorch/issues/59778 (Windows: refused though free)": (
        "CUDA out of memory. Tried to allocate 2.26 GiB (GPU 0; 6.00 GiB total capacity; 781.59 "
        "MiB already allocated; 3.03 GiB free; 1.24 GiB reserved in total by PyTorch)",
        "limit",
    ),
    "github.com/pytorch/pytorch/issues/16417 (1.0: cached)": (
        "RuntimeError: CUDA out of memory. Tried to allocate 12.50 MiB (GPU 0; 10.92 GiB total "
        "capacity; 8.57 MiB already allocated; 9.28 GiB free; 4.68 MiB cached)",
        "limit",
    ),
    "github.com/Comfy-Org/ComfyUI/issues/7372 (MPS)": (
        "MPS backend out of memory (MPS allocated: 17.68 GB, other allocations: 3.95 MB, max "
        "allowed: 18.13 GB). Tried to allocate 1024.00 MB on private pool.",
        "too-big",
    ),
    "github.com/IvanoLauriola/MKLpy/issues/27 (processor)": (
        "RuntimeError: [enforce fail at alloc_cpu.cpp:72] data. DefaultCPUAllocator: not enough "
        "memory: you tried to allocate 5077901088 bytes.",
        "host",
    ),
    "github.com/pytorch/pytorch/issues/108861 (/dev/shm)": (
        "RuntimeError: DataLoader worker (pid 11011) is killed by signal: Bus error. It is "
        "possible that dataloader's workers are out of shared memory. Please try to raise your "
        "shared memory limit.",
        "shared-memory",
    ),
    "docs: a worker that the system ended": (
        "RuntimeError: DataLoader worker (pid 1234) is killed by signal: Killed.",
        "worker",
    ),
    "torch's source: another process named (2.2 on)": (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
        "capacity of 23.65 GiB of which 1.02 GiB is free. Process 4711 has 9.60 GiB memory in use. "
        "Including non-PyTorch memory, this process has 13.03 GiB memory in use. Of the allocated "
        "memory 12.00 GiB is allocated by PyTorch, and 150.00 MiB is reserved by PyTorch but "
        "unallocated.",
        "other-programs",
    ),
    "driver: no figures": ("RuntimeError: CUDA error: out of memory", "driver"),
    "cuBLAS": ("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling ...", "driver"),
    "another error": ("ValueError: shapes do not match", "other"),
    "empty": ("", "none"),
}


@pytest.mark.parametrize("source", POSTED)
def test_posted_errors_are_explained(source: str) -> None:
    text, kind = POSTED[source]
    explanation = explain(text)
    assert explanation.kind == kind
    for language in LANGUAGES:
        found = help_for(explanation)
        for message in (explanation.says, *(fix.says for fix in explanation.fixes), *found.needs):
            assert "diagnose." not in render(message, language)
    assert bool(explanation.fixes or found.needs) == (kind != "none")


def test_the_account_is_the_messages() -> None:
    account = explain(POSTED["torch's source: another process named (2.2 on)"][0]).account
    assert account.asked == 2 * GIB
    assert account.total == int(23.65 * GIB)
    assert account.others == int(9.6 * GIB)
    assert account.unused == 150 * MIB


def test_others_are_worked_out_where_they_are_not_named() -> None:
    text = POSTED["github.com/kerrj/lerf/issues/73 (2.1: in pieces)"][0]
    account = explain(text).account
    assert account.others == pytest.approx((23.65 - 1.66 - 20.81) * GIB, abs=1000)


def test_the_last_error_of_a_log_counts() -> None:
    first, second = (
        POSTED[key][0]
        for key in ("github.com/microsoft/unilm/issues/137 (1.4: full)",
                    "github.com/murong-xu/CADS/issues/4 (2.x: too big)")
    )  # fmt: skip
    log = f"Traceback\n  {first}\nretrying\n{second}\n"
    assert explain(log).account.asked == int(22.78 * GIB)


def test_lines_broken_by_a_terminal_are_read() -> None:
    text = POSTED["github.com/microsoft/unilm/issues/137 (1.4: full)"][0]
    assert explain(text.replace(" ", "\n", 30)).account == explain(text).account


@pytest.mark.parametrize(
    "text",
    ["CUDA out of memory. Tried to allocate 9" * 20_000, "\0" * 100_000, "(" * 100_000 + "Killed"],
    ids=["repeated", "binary", "brackets"],
)
def test_hostile_text_gets_an_answer(text: str) -> None:
    assert explain(text).kind


CAUGHT = (
    "WARNING retry: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 "
    "has a total capacity of 23.64 GiB of which 1.31 GiB is free. (caught, batch halved)\n"
)
BUS = (
    "RuntimeError: DataLoader worker (pid 2312) is killed by signal: Bus error. It is possible "
    "that dataloader's workers are out of shared memory."
)


def test_the_error_that_ended_the_run_is_explained_and_not_one_that_was_caught_before() -> None:
    assert explain(CAUGHT + "epoch 2\n" + BUS).kind == "shared-memory"
    assert explain(BUS + "\n" + CAUGHT).kind == "too-big"


def test_what_the_message_does_not_tell_is_not_told_as_nothing() -> None:
    for language in LANGUAGES:
        said = render(explain(CAUGHT).says, language)
        assert "0 MiB" not in said
        assert "2.00 GiB" in said


def test_metals_other_allocations_are_no_other_programs() -> None:
    account = explain(
        "RuntimeError: MPS backend out of memory (MPS allocated: 17.00 GB, other allocations: "
        "100.00 MB, max allowed: 18.00 GB). Tried to allocate 2.00 GB on private pool."
    ).account
    assert account.others is None
    assert account.process == 17 * GIB + 100 * MIB


FULL = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
    "capacity of 23.65 GiB of which 1.02 GiB is free. Including non-PyTorch memory, this process "
    "has 22.60 GiB memory in use. Of the allocated memory 22.00 GiB is allocated by PyTorch, and "
    "150.00 MiB is reserved by PyTorch but unallocated."
)
SHORT = int(2 * GIB - int(1.02 * GIB))
LAUNCHER = (
    "Unable to shutdown process 4711 via Signals.SIGTERM, forcefully exiting via Signals.SIGKILL\n"
    "failed (exitcode: 1) local_rank: 1 (pid: 4712) of binary: python"
)


@pytest.mark.parametrize(
    ("text", "kind", "missing"),
    [
        pytest.param(FULL, "too-big", SHORT, id="torch"),
        pytest.param(FULL.replace(" 2.00", " \x1b[1m2.00").replace("free.", "free\x1b[0m."),
                     "too-big", SHORT, id="colours of a notebook"),
        pytest.param(FULL.replace("memory.", "[31mmemory[39m.", 1), "too-big", SHORT,
                     id="colours whose escape character was lost"),
        pytest.param("[rank0]: " + FULL.replace("GPU 0", "\n[rank0]: GPU 0"), "too-big", SHORT,
                     id="a launcher's prefix on each line"),
        pytest.param(f"{FULL}\n{LAUNCHER}", "too-big", SHORT, id="a launcher that cleans up"),
        pytest.param(
            "CUDA out of memory. Tried to allocate 786.00 MiB. GPU 0 has a total capacty of "
            "14.75 GiB of which 558.81 MiB is free. Process 81717 has 14.20 GiB memory in use. Of "
            "the allocated memory 12.95 GiB is allocated by PyTorch, and 250.17 MiB is reserved by "
            "PyTorch but unallocated.",
            "too-big", 786 * MIB - int(558.81 * MIB), id="in a container: its own process"),
        pytest.param(
            "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.25 "
            "GiB of which 70.00 GiB is free. 8.00 GiB allowed; Of the allocated memory 7.00 GiB is "
            "allocated by PyTorch, and 200.00 MiB is reserved by PyTorch but unallocated.",
            "limit", GIB + 200 * MIB, id="a fraction that was set"),
        pytest.param(
            "XPU out of memory. Tried to allocate 12.00 GiB. GPU 0 has a total capacity of 11.50 "
            "GiB. Of the allocated memory 3.00 GiB is allocated by PyTorch, and 512.00 MiB is "
            "reserved by PyTorch but unallocated. Please use `empty_cache` to release all.",
            "too-big", 4 * GIB, id="XPU, which does not say what is free"),
        pytest.param(
            "torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of "
            "memory)\nCurrently allocated     : 10.31 GiB\nRequested               : 20.00 MiB\n"
            "Device limit            : 11.99 GiB\nFree (according to CUDA): 0 bytes\nPyTorch limit "
            "(set by user-supplied memory fraction)\n                        : 17179869184.00 GiB",
            "too-big", 20 * MIB, id="cudaMallocAsync"),
        pytest.param("ResourceExhaustedError: OOM when allocating tensor with shape[32,1024]",
                     "driver", None, id="TensorFlow"),
        pytest.param(
            "ValueError: To serve at least one request with the models's max seq len (131072), "
            "(16.00 GiB KV cache is needed, which is larger than the available KV cache memory "
            "(7.50 GiB). Based on the available memory, the estimated maximum model length is "
            "61440.", "cache", int(8.5 * GIB), id="vLLM: the longest context"),
        pytest.param(
            "ValueError: Free memory on device (14.50/122.82 GiB) on startup is less than desired "
            "GPU memory utilization (0.7, 86.00 GiB).", "other-programs", int(71.5 * GIB),
            id="vLLM: others hold it"),
        pytest.param("ValueError: No available memory for the cache blocks. Try increasing",
                     "cache", None, id="vLLM: nothing left"),
        pytest.param("RuntimeError: Not enough memory. Please try to increase "
                     "--mem-fraction-static.", "cache", None, id="SGLang"),
        pytest.param("Error: model requires more system memory (17.5 GiB) than is available "
                     "(13.0 GiB)", "host", int(4.5 * GIB), id="Ollama"),
        pytest.param("Error out of memory at line 351 in file /src/bitsandbytes/csrc/x.c",
                     "driver", None, id="bitsandbytes"),
        pytest.param("ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\n"
                     "Cuda failure 2 'out of memory'", "driver", None, id="NCCL"),
        pytest.param("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(h)`",
                     "driver", None, id="cuBLAS"),
        pytest.param("OSError: [WinError 1455] The paging file is too small for this operation",
                     "host", None, id="Windows' page file"),
        pytest.param("exitcode  : -9 (pid: 29066)", "host", None, id="torchrun"),
        pytest.param("exits with return code = -9", "host", None, id="DeepSpeed"),
        pytest.param("Reason:       OOMKilled\n Exit Code:    137", "host", None, id="Kubernetes"),
        pytest.param("train.sh: line 12: 31337 Killed       python train.py", "host", None,
                     id="bash"),
    ],
)  # fmt: skip
def test_what_was_missing_is_read_to_the_byte_where_it_is_stated(
    text: str, kind: str, missing: int | None
) -> None:
    found = explain(text)
    assert (found.kind, found.missing) == (kind, missing)
    for language in LANGUAGES:
        assert "diagnose." not in render(found.says, language)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.", 1 << 34),
        ("OutOfMemoryError: Out of memory allocating 8,589,934,592 bytes (allocated so far: 5 "
         "bytes).", 1 << 33),
        ("failed to allocate CUDA0 buffer of size 8544190464", 8_544_190_464),
        ("OSError: unable to mmap 9976576152 bytes from file <m>: Cannot allocate memory (12)",
         9_976_576_152),
    ],
)  # fmt: skip
def test_what_other_programs_ask_for_is_read(text: str, asked: int) -> None:
    assert explain(text).account.asked == asked


def test_a_process_that_a_container_cannot_know_as_its_own_is_no_other_program() -> None:
    other = FULL.replace("Including non-PyTorch memory, this process has", "Process 7 has")
    account = explain(other).account
    assert (account.others, account.process) == (None, int(22.6 * GIB))


def test_expandable_segments_that_are_on_are_not_proposed_again() -> None:
    text = POSTED["github.com/kerrj/lerf/issues/73 (2.1: in pieces)"][0]
    assert [fix.patch for fix in explain(text + HINT).fixes] == [
        {"settings.allocator": "expandable"}
    ]
    setting = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python train.py\n"
    found = explain(setting + "step 1\n" * 2000 + text + HINT)
    assert found.kind == "fragmentation"
    assert not found.fixes
    assert [each.says.id for each in help_for(found).fixes] == ["diagnose.fix.lower-peak"]
    assert "are on" in render(found.says, "en")


def test_logs_of_powershell_and_the_end_of_long_ones_are_read(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(FULL.encode("utf-16"))
    assert explain(from_file(str(path))).missing == SHORT
    path.write_text("step\n" * 1_000_000 + FULL, encoding="utf-8")
    assert explain(from_file(str(path))).missing == SHORT
    path.write_bytes(b"\xff\xfes\xc3" + FULL.encode())  # not text throughout
    assert from_file(str(path))
    path.write_bytes(b"\x80\x04}\x94.")
    with pytest.raises(UserError, match="pickle"):
        from_file(str(path))


@pytest.mark.parametrize(
    "text",
    [
        "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 1; 79.15 GiB total capacity; 40.10 "
        "GiB already allocated; 18.31 MiB free; 40.50 GiB reserved in total by PyTorch)",
        "CUDA out of memory. Tried to allocate 224.00 MiB. GPU 1 has a total capacity of 79.15 GiB "
        "of which 18.31 MiB is free. Process 3021 has 38.40 GiB memory in use. Process 4410 has "
        "40.71 GiB memory in use. Of the allocated memory 39.90 GiB is allocated by PyTorch, and "
        "310.00 MiB is reserved by PyTorch but unallocated.",
    ],
)
def test_memory_that_is_not_torchs_is_another_programs(text: str) -> None:
    found = explain(text)
    assert found.kind == "other-programs"
    assert found.account.others == pytest.approx(38.5 * GIB, rel=0.01)
