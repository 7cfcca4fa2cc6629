# ruff: noqa: E501 - what tools print is as wide as it is
"""Output of nvidia-smi, gpustat, nvitop, dcgmi, py-spy, iostat, vmstat, free, key_averages."""

import json
from functools import partial

import pytest

from trainwright.diagnose.decide import judge
from trainwright.diagnose.evidence_readings import GpuReadings
from trainwright.diagnose.gathering import gather
from trainwright.diagnose.readers import (
    columns,
    gpu_monitors,
    host_tools,
    nvidia_query,
    nvidia_report,
    nvidia_smi,
    operator_table,
    stacks,
)
from trainwright.diagnose.readers.found import FIELDS, called, gpu_readings
from trainwright.diagnose.verdict import Cause
from trainwright.messages import UserError

TABLE = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 555.42.02              Driver Version: 555.42.02      CUDA Version: 12.5     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|=========================================+========================+======================|
|   0  NVIDIA GeForce RTX 3060        On  |   00000000:01:00.0  On |                  N/A |
| 53%   45C    P2            114W /  170W |    9216MiB /  12288MiB |      7%      Default |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA A100-SXM4-80GB          Off |   00000000:41:00.0 Off |                    0 |
| N/A   31C    P0             61W /  400W |       3MiB /  81920MiB |      0%      Default |
+-----------------------------------------+------------------------+----------------------+
| Processes:                                                                              |
|    0   N/A  N/A      4242      C   python                                      9200MiB |
"""
CSV = """timestamp, index, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw [W], power.limit [W], pstate, clocks_event_reasons.sw_power_cap, clocks_event_reasons.hw_slowdown
2024/03/04 12:00:01.000, 0, NVIDIA A100-SXM4-80GB, 98 %, 70000 MiB, 81920 MiB, 399.10 W, 400.00 W, P0, Active, Not Active
2024/03/04 12:00:02.000, 0, NVIDIA A100-SXM4-80GB, 4 %, 70000 MiB, 81920 MiB, 120.10 W, 400.00 W, P0, Not Active, Not Active
2024/03/04 12:00:03.000, 0, NVIDIA A100-SXM4-80GB, 96 %, 70500 MiB, 81920 MiB, [N/A], 400.00 W, P0, Active, Not Active
2024/03/04 12:00:04.000, 0, NVIDIA A1"""
REPORT = """
==============NVSMI LOG==============

Timestamp                                 : Mon Mar  4 12:00:01 2024
Driver Version                            : 550.54.15
Attached GPUs                             : 1
GPU 00000000:07:00.0
    Product Name                          : NVIDIA A100-SXM4-80GB
    Performance State                     : P0
    Clocks Event Reasons
        Idle                              : Not Active
        SW Power Cap                      : Active
        HW Slowdown                       : Not Active
            HW Thermal Slowdown           : Not Active
            HW Power Brake Slowdown       : Not Active
        SW Thermal Slowdown               : Not Active
    FB Memory Usage
        Total                             : 81920 MiB
        Reserved                          : 622 MiB
        Used                              : 70000 MiB
        Free                              : 11297 MiB
    Utilization
        Gpu                               : 97 %
        Memory                            : 55 %
    Temperature
        GPU Current Temp                  : 61 C
    GPU Power Readings
        Average Power Draw                : N/A
        Instantaneous Power Draw          : 391.11 W
        Current Power Limit               : 400.00 W
        Default Power Limit               : 400.00 W
    Clocks
        Graphics                          : 1305 MHz
        SM                                : 1305 MHz
    Max Clocks
        SM                                : 1410 MHz
    PCI
        GPU Link Info
            PCIe Generation
                Max                       : 4
                Current                   : 4
            Link Width
                Max                       : 16x
                Current                   : 8x
"""
DMON = """# gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk
# Idx      W      C      C      %      %      %      %      %      %    MHz    MHz
    0     61     35      -     40     12      0      0      -      -   1593   1410
    0     65     36      -      0      2      0      0      -      -   1593   1410
    1     55     33      -      -      0      0      0      -      -   1593    210
"""
PMON = """# gpu         pid   type     sm    mem    enc    dec    command
# Idx           #    C/G      %      %      %      %    name
    0       4242     C     35     10      -      -    python
    0       4242     C     45     10      -      -    python
    1          -     -      -      -      -      -    -
"""
DCGM = """#Entity   GPUTL  SMACT  TENSO  DRAMA
ID
GPU 0     97     0.310  0.052  0.210
GPU 0     99     0.330  0.050  0.230
GPU 1     N/A    N/A    N/A    N/A
"""
GPUSTAT = """host  Mon Mar  4 12:00:01 2024  550.54.15
[0] NVIDIA A100-SXM4-80GB | 61'C,  97 %,  391 / 400 W | 70000 / 81920 MB | user:python/4242(69000M)
[1] NVIDIA A100-SXM4-80GB | 31'C,   0 % |     3 / 81920 MB |
"""
NVITOP = """Mon Mar 04 12:00:01 2024
╒═════════════════════════════════════════════════════════════════════════════╕
│ NVITOP 1.3.2         Driver Version: 550.54.15      CUDA Driver Version: 12.4 │
├───────────────────────────────┬──────────────────────┬──────────────────────┤
│ GPU  Name        Persistence-M│ Bus-Id        Disp.A │ Volatile Uncorr. ECC │
│ Fan  Temp  Perf  Pwr:Usage/Cap│         Memory-Usage │ GPU-Util  Compute M. │
╞═══════════════════════════════╪══════════════════════╪══════════════════════╡
│   0  GeForce RTX 3060    On   │ 00000000:01:00.0  On │                  N/A │
│ 53%   45C    P2   114W / 170W │   9216MiB / 12.00GiB │      7%      Default │
╘═══════════════════════════════╧══════════════════════╧══════════════════════╛
"""


@pytest.mark.parametrize(
    ("module", "text", "expected"),
    [
        (nvidia_smi, TABLE, {"utilisation": 0.07, "power_w": 114, "memory_used_bytes": 9216 << 20,
                             "performance_state": 2, "name": "NVIDIA GeForce RTX 3060"}),
        (nvidia_query, CSV, {"utilisation": 0.66, "memory_used_bytes": 70500 << 20,
                             "throttled": {"power-cap": 2 / 3}, "idle_share": 1 / 3}),
        (nvidia_report, REPORT, {"utilisation": 0.97, "power_w": 391.11, "link_width": 8,
                                 "sm_clock_max_mhz": 1410, "throttled": {"power-cap": 1.0}}),
        (columns, DMON, {"utilisation": 0.2, "power_w": 63, "sm_clock_mhz": 1410}),
        (columns, DMON.replace("    ", ", "), {"utilisation": 0.2, "power_w": 63}),
        (columns, PMON, {"utilisation": 0.4}),
        (columns, DCGM, {"utilisation": 0.98, "sm_active": 0.32, "tensor_active": 0.051}),
    ],
)  # fmt: skip
def test_gpu_readings_of_each_tool(module, text, expected):
    check(module.read, text, expected)


SCHEMA = "https://www.speedscope.app/file-format-schema.json"
LIST = """GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77)
  MIG 3g.40gb     Device  0: (UUID: MIG-7d5b4d9a-0b9b-5e3f-8e55-2a0f5f8d6f55)
GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-0b3ba0d6-d33d-2b2c-524d-9e3d8d2b8a11)
"""
WINDOWS = """\
| GPU  Name                  Driver-Model | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|   0  NVIDIA GeForce RTX 3060 ...  WDDM  |   00000000:01:00.0  On |                  N/A |
| N/A   81C    P0             80W /   80W |    5938MiB /   6144MiB |     99%      Default |
|  GPU   GI   CI        PID   Type   Process name                              GPU Memory |
|    0   N/A  N/A      4680    C+G   ...crosoft\\Edge\\Application\\msedge.exe      N/A      |
|    0   N/A  N/A     15240      C   ...ograms\\Python\\Python311\\python.exe      N/A      |
"""
SAR = """Linux 5.15.0-91-generic (gpu01) 	01/10/24 	_x86_64_	(16 CPU)

12:00:01 AM     CPU     %user     %nice   %system   %iowait    %steal     %idle
12:00:11 AM     all      5.00      0.00      1.00     41.00      0.00     53.00
12:00:21 AM     all      7.00      0.00      1.00     43.00      0.00     49.00
Average:        all      6.00      0.00      1.00     42.00      0.00     51.00

12:00:01 AM     DEV       tps     rkB/s     wkB/s     dkB/s   areq-sz    aqu-sz     await     %util
12:00:11 AM     sda    170.00  19000.00      0.00      0.00    110.53     15.17     88.20     99.00
12:00:11 AM     sdb      1.00    100.00      0.00      0.00    110.53      0.17      1.20      1.00
12:00:21 AM     sda    172.00  21000.00      0.00      0.00    110.53     15.17     88.20     97.00
12:00:21 AM     sdb      1.00    100.00      0.00      0.00    110.53      0.17      1.20      1.00
Average:        sda    171.00  20000.00      0.00      0.00    110.53     15.17     88.20     98.00
"""


def test_a_list_of_gpus_has_their_names():
    found = nvidia_smi.read_list(LIST)
    assert [each["name"] for each in gpu_readings(found.gpus)] == ["NVIDIA A100-SXM4-80GB"] * 2
    assert "diagnose.file.slices" in [each.id for each in found.missed]


def test_what_draws_on_windows_does_not_compute():
    said = {each.id: dict(each.values) for each in nvidia_smi.read(WINDOWS).took}
    assert said["diagnose.file.gpu-processes"] == {"count": 1}


def test_sar_means_what_its_averages_are():
    host = host_tools.read("sar", SAR).facts["host"]
    assert host["io_wait"] == pytest.approx(0.42)
    assert host["utilisation"]["mean"] == pytest.approx(0.07)
    assert host["drive_busy"] == pytest.approx(0.98)
    assert host["read_bytes_s"] == pytest.approx(20_100 * 1024)
    with pytest.raises(UserError):
        host_tools.read("sar", SAR[: SAR.index("12:00:11")])


def test_gpu_readings_of_monitors():
    check(gpu_monitors.gpustat, GPUSTAT,
          {"utilisation": 0.97, "power_w": 391, "memory_total_bytes": 81920 << 20})  # fmt: skip
    check(gpu_monitors.nvitop, NVITOP,
          {"utilisation": 0.07, "power_w": 114, "memory_total_bytes": 12 << 30})  # fmt: skip


def busy_as(tmp_path, first: str, second: str, desktop: int = 3):
    """Return what is said of two GPUs that hold 70 GiB or, where they rest, what a desktop does."""
    lines = "".join(
        f"{at}, {load} %, {desktop if len(load) == 1 else 70000} MiB, 81920 MiB\n"
        for at, load in enumerate((first, second))
    )
    heading = "index, utilization.gpu [%], memory.used [MiB], memory.total [MiB]\n"
    (tmp_path / "gpus.csv").write_text(heading + lines, encoding="utf-8")
    found = gather([tmp_path / "gpus.csv"])
    return judge(found.evidence).first, found


def test_gpus_that_do_not_work_alike_are_no_mean(tmp_path):
    verdict, found = busy_as(tmp_path, "100", "34")
    assert (verdict.cause, verdict.variant) == (Cause.SCHEDULING, "uneven")
    assert [each.value for each in verdict.signals] == [pytest.approx(0.66)]
    said = next(each for each in found.files[0].took if each.id == "diagnose.file.uneven")
    assert dict(said.values) == {"low": 0.34, "high": 1.0}
    assert busy_as(tmp_path, "100", "97")[0].variant != "uneven"


def test_a_gpu_that_rests_and_holds_nothing_is_not_the_runs(tmp_path):
    verdict, found = busy_as(tmp_path, "100", "0")
    assert verdict.variant != "uneven"
    assert [each.utilisation.mean for each in found.evidence.gpus] == [1.0]
    assert "diagnose.file.gpus-at-rest" in [each.id for each in found.files[0].took]
    assert busy_as(tmp_path, "98", "3", desktop=612)[0].variant != "uneven"
    assert busy_as(tmp_path, "98", "3", desktop=9000)[0].variant == "uneven"


def check(read, text, expected):
    assert read("nothing of the kind\n") is None
    readings = gpu_readings(read(text).gpus)[0]
    for name, value in expected.items():
        held = readings[name]
        held = held["mean"] if isinstance(held, dict) and "mean" in held else held
        assert held == (value if isinstance(value, str) else pytest.approx(value)), name


def test_the_table_of_fields_names_a_records_and_no_tools_word_twice():
    assert set(FIELDS) <= set(GpuReadings.model_fields)
    for tool in ("query", "columns", "wandb", "nvtop"):
        words = [word for field in FIELDS.values() for word in getattr(field, tool)]
        assert len(words) == len(set(words)) == len(called(tool))


def test_what_a_tool_did_not_print_is_absent_and_not_zero():
    assert "utilisation" not in gpu_readings(columns.read(DMON).gpus)[1]
    assert "power_w" not in gpu_readings(gpu_monitors.gpustat(GPUSTAT).gpus)[1]
    assert "throttled" not in gpu_readings(nvidia_smi.read(TABLE).gpus)[0]
    unreadable = TABLE.replace("     7%  ", "   ERR!  ")
    assert "utilisation" not in gpu_readings(nvidia_smi.read(unreadable).gpus)[0]


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (nvidia_query.read, CSV.splitlines()[0]),
        (nvidia_query.read, CSV.split("\n", 1)[1]),  # --format=csv,noheader
        (nvidia_query.read, CSV.splitlines()[0] + "\n1,2,3\n"),
        (columns.read, DMON.splitlines()[0] + "\n x y z\n"),
        (columns.read, PMON.splitlines()[0] + "\n    0  -  -\n"),
        (
            partial(host_tools.read, "vmstat"),
            " r  b   swpd   free  si   so    bi    bo  us sy id wa\n a b\n",
        ),
        (partial(host_tools.read, "iostat"), "Device  r/s  rkB/s  %util\nsda  x  y  z\n"),
        (host_tools.free, "   total   used  free  shared\nMem:  1x\n"),
        (operator_table.read, "  Name    Self CPU %      Self CPU    # of Calls\n---  ---  ---\n"),
        (stacks.dump, "Process 1: python\nThread 1 (idle)\n"),
        (stacks.speedscope, f'{{"$schema": "{SCHEMA}", "profiles": [{{"type": "sampled"}}]}}'),
        (
            stacks.speedscope,
            f'{{"$schema": "{SCHEMA}", "shared": {{"frames": []}}, "profiles": []}}',
        ),
        (stacks.speedscope, f'{{"$schema": "{SCHEMA}", "a": ' + "[" * 100_000),
    ],
)
def test_a_heading_without_figures_is_refused(read, text):
    with pytest.raises(UserError):
        read(text)


def test_shares_beyond_all_are_not_believed():
    assert (
        "sm_active"
        not in gpu_readings(columns.read(DCGM.replace("0.310", "9.1").replace("0.330", "7")).gpus)[
            0
        ]
    )
    odd = CSV.replace("98 %", "980 %").replace(" 4 %", "1e400 %")
    assert gpu_readings(nvidia_query.read(odd).gpus)[0]["utilisation"]["mean"] == pytest.approx(
        0.96
    )


IOSTAT = """Linux 5.15.0 (host) \t03/04/2024 \t_x86_64_\t(16 CPU)

avg-cpu:  %user   %nice %system %iowait  %steal   %idle
           1.00    0.00    1.00    0.00    0.00   98.00

Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s  %util
nvme0n1          1.00     10.00     0.00   0.00    0.10    10.00    1.00     10.00   0.10

avg-cpu:  %user   %nice %system %iowait  %steal   %idle
          20.00    0.00    5.00   30.00    0.00   45.00

Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s  %util
nvme0n1       1000.00 102400.00     0.00   0.00    9.10   102.40    1.00     10.00  99.10
loop0            1.00     10.00     0.00   0.00    0.10    10.00    1.00     10.00   0.10
"""
VMSTAT = """procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st
15  0      0 13297964 436548 6400232    0    0 26625  1420  506 1009 83  7  9  0  0
15  2   1000 13297964 436548 6400232  512    0  1024    12  730 1076 20  5 45 30  0
"""
FREE = """               total        used        free      shared  buff/cache   available
Mem:        24684096     4968368    13288912        8788     6836884    19715728
Swap:              0           0           0
"""


def test_host_tools_leave_out_the_mean_since_boot():
    host = host_tools.read("iostat", IOSTAT).facts["host"]
    assert host["io_wait"] == pytest.approx(0.3)
    assert host["utilisation"]["mean"] == pytest.approx(0.25)
    assert host["drive_busy"] == pytest.approx(0.991)
    assert host["read_bytes_s"] == 102400 << 10
    host = host_tools.read("vmstat", VMSTAT).facts["host"]
    assert host["io_wait"] == pytest.approx(0.3)
    assert host["swapped_bytes_s"] == 512 << 10
    assert host["read_bytes_s"] == 1024 << 10


@pytest.mark.parametrize(
    ("text", "total"),
    [
        (FREE, 24684096 << 10),
        (FREE.replace("24684096", "    23Gi"), 23 << 30),
        (FREE.replace("24684096", "   24105"), None),  # -m: the unit is not in the text
    ],
)
def test_memory_in_the_unit_that_the_text_names(text, total):
    assert host_tools.free(text).facts.get("host", {}).get("memory_total_bytes") == total


DUMP = """Process 4242: python train.py
Python v3.10.12 (/usr/bin/python3.10)

Thread 4300 (active): "Thread-1 (_pin_memory_loop)"
    select (selectors.py:416)
Thread 4242 (idle): "MainThread"
    wait (threading.py:320)
    get (queue.py:180)
    _try_get_data (torch/utils/data/dataloader.py:1131)
    __next__ (torch/utils/data/dataloader.py:633)
    <module> (train.py:40)
"""


LOADER = "__next__ (torch/utils/data/dataloader.py)"


def shares_of(text):
    rows = stacks.dump(text).facts["profile"]["host_top"]
    return {row["name"]: row["share"] for row in rows}


def test_few_dumps_say_how_large_a_share_is_at_least():
    found = stacks.dump(DUMP)
    assert "diagnose.file.now-loader" in [each.id for each in found.took]
    assert "diagnose.file.few-dumps" in [each.id for each in found.missed]
    # Wilson's interval, as statsmodels' proportion_confint(1, 1, 0.1, "wilson") has it: 0.27
    assert shares_of(DUMP)[LOADER] == pytest.approx(0.27, abs=0.001)
    assert shares_of("\n".join([DUMP] * 9))[LOADER] == pytest.approx(0.769, abs=0.001)


def test_a_dump_of_the_loader_speaks_for_the_input_pipeline(tmp_path):
    (tmp_path / "dump.txt").write_text(DUMP, encoding="utf-8")
    diagnosis = judge(gather([tmp_path / "dump.txt"]).evidence)
    assert Cause.INPUT in {each.cause for each in diagnosis.verdicts}


def test_a_dump_of_a_wait_for_the_device_accuses_nothing(tmp_path):
    dump = DUMP.replace(
        "    get (queue.py:180)\n    _try_get_data (torch/utils/data/dataloader.py:1131)\n", ""
    )
    dump = dump.replace("wait (threading.py:320)", "synchronize (torch/cuda/__init__.py:1085)")
    dump = dump.replace("__next__ (torch/utils/data/dataloader.py:633)", "train (train.py:30)")
    (tmp_path / "dump.txt").write_text(dump, encoding="utf-8")
    assert [each.cause for each in judge(gather([tmp_path / "dump.txt"]).evidence).verdicts] == [
        Cause.UNKNOWN
    ]


def test_a_loaders_workers_are_not_the_main_thread():
    worker = """Process 4300: python train.py
Python v3.10.12 (/usr/bin/python3.10)

Thread 4300 (idle): "MainThread"
    select (selectors.py:415)
    get (multiprocessing/queues.py:113)
    _worker_loop (torch/utils/data/_utils/worker.py:275)
    run (multiprocessing/process.py:108)
"""
    busy = DUMP.replace(
        "    wait (threading.py:320)\n    get (queue.py:180)\n", "    mul (x.py:1)\n"
    )
    assert "get (multiprocessing/queues.py)" not in shares_of(busy + worker * 4)


def test_many_dumps_are_shares():
    busy = DUMP.replace(
        "    wait (threading.py:320)\n    get (queue.py:180)\n", "    mul (x.py:1)\n"
    )
    shares = shares_of("\n".join([DUMP] * 9 + [busy] * 3))
    assert shares["get (queue.py)"] == pytest.approx(0.75)


def test_speedscope_weighs_the_main_thread():
    data = {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "profiles": [
            {"type": "sampled", "name": 'Thread 1 "MainThread"', "unit": "seconds",
             "samples": [[0, 1]] * 10 + [[0]] * 10, "weights": [0.03] * 10 + [0.01] * 10},
            {"type": "sampled", "name": 'Thread 2 "Other"', "unit": "seconds",
             "samples": [[2]] * 99, "weights": [1] * 99},
        ],
        "shared": {"frames": [{"name": "train", "file": "train.py", "line": 1},
                              {"name": "synchronize", "file": "cuda.py"}, {"name": "other"}]},
    }  # fmt: skip
    text = json.dumps(data)
    rows = stacks.speedscope(text).facts["profile"]["host_top"]
    assert {row["name"]: row["share"] for row in rows} == {
        "train (train.py)": 1.0, "synchronize (cuda.py)": pytest.approx(0.75)
    }  # fmt: skip


GPU_TABLE = """
-------------------------------------------------------  ------------  ------------  ------------  ------------  ------------  ------------
                                                   Name    Self CPU %      Self CPU     CPU total     Self CUDA %    CUDA total    # of Calls
-------------------------------------------------------  ------------  ------------  ------------  ------------  ------------  ------------
enumerate(DataLoader)#_MultiProcessingDataLoaderIter...        71.20%      6.412s        6.420s         0.00%       0.000us             20
                                              aten::conv2d      1.10%     99.1ms       812.2ms        38.10%       610.1ms          1060
                                    cudaStreamSynchronize      9.30%    837.0ms       837.0ms         0.00%       0.000us           120
-------------------------------------------------------  ------------  ------------  ------------  ------------  ------------  ------------
Self CPU time total: 9.005s
Self CUDA time total: 1.601s
"""


def test_a_table_of_operators_gives_shares_of_a_step():
    found = operator_table.read(GPU_TABLE)
    profile = found.facts["profile"]
    assert found.facts["steps"]["steps"] == 20
    assert profile["data_loader"] == pytest.approx(6.420 / 9.005)
    assert profile["idle"] == pytest.approx(1 - 1.601 / 9.005)
    assert profile["synchronise_calls"] == 6
    assert profile["top"] == [
        {"name": "aten::conv2d", "share": pytest.approx(0.381), "calls": 53,
         "seconds": pytest.approx(0.381 * 1.601 / 1060)},
    ]  # fmt: skip
    spent = {each.use: each.seconds for each in found.budget.shares}
    assert spent["waiting"] == pytest.approx(0.837 / 20)
    assert sum(spent.values()) == pytest.approx(9.005 / 20)


def test_launches_by_the_driver_count_as_those_by_the_runtime():
    """Triton's kernels, which torch.compile makes, are launched by cuLaunchKernel."""
    compiled = GPU_TABLE.replace("cudaStreamSynchronize", "       cuLaunchKernel")
    assert operator_table.read(compiled).facts["profile"]["launches_a_step"] == 6


def test_the_table_that_torch_prints_agrees_with_its_rows():
    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(64, 64)
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        for _ in range(5):
            layer(torch.randn(64, 64)).sum().backward()
            optimizer.step()
    rows = profiler.key_averages()
    found = operator_table.read(rows.table(sort_by="self_cpu_time_total", row_limit=1000))
    whole = sum(each.self_cpu_time_total for each in rows) * 1e-6
    assert found.facts["steps"]["steps"] == 5
    assert found.budget.seconds == pytest.approx(whole / 5, rel=0.01)
    matrix = next(each for each in rows if each.key == "aten::addmm")
    shares = {row["name"]: row["share"] for row in found.facts["profile"]["top"]}
    assert shares["aten::addmm"] == pytest.approx(
        matrix.self_cpu_time_total * 1e-6 / whole, abs=0.01
    )


def test_a_table_of_single_events_is_refused_with_what_to_print():
    text = """\
---------------------------  ------------  ------------  ------------  ------------  ------------  ------------
                       Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg    # of Calls
---------------------------  ------------  ------------  ------------  ------------  ------------  ------------
                aten::empty         0.00%      11.892us         0.00%      11.892us      11.892us             1
               aten::select         0.00%      14.717us         0.00%      17.923us      17.923us             1
           aten::as_strided         0.00%       3.206us         0.00%       3.206us       3.206us             1
               aten::select         0.00%       2.054us         0.00%       2.575us       2.575us             1
---------------------------  ------------  ------------  ------------  ------------  ------------  ------------
Self CPU time total: 1.669s
"""
    with pytest.raises(UserError) as refused:
        operator_table.read(text)
    assert refused.value.message.id == "diagnose.file.table-of-events"
