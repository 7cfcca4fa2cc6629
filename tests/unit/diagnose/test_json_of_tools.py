"""JSON and XML of tools, other languages of free, and outputs that say nothing of causes."""

import json

import pytest

from trainwright.diagnose.readers import files
from trainwright.diagnose.readers.found import gpu_readings
from trainwright.messages import UserError, render

GPU = {
    **{"index": 0, "uuid": "GPU-a", "name": "NVIDIA GeForce RTX 3090", "temperature.gpu": 71},
    **{"fan.speed": 60, "utilization.gpu": 98, "power.draw": 342, "enforced.power.limit": 350},
    **{"memory.used": 20123, "memory.total": 24576, "processes": []},
}
GPUSTAT = {
    **{"hostname": "node1", "driver_version": "550.54.15", "query_time": "2026-11-30T12:00:00"},
    "gpus": [GPU, GPU | {"index": 1, "utilization.gpu": None, "memory.used": 300}],
}
"""As gpustat 1.1 prints it with --json: ``GPUStatCollection.jsonify``."""
LOAD = {"user": 55.0, "nice": 0.0, "system": 5.0, "iowait": 20.0, "steal": 0.0, "idle": 20.0}
DRIVE = {"disk_device": "nvme0n1", "r/s": 2210.0, "rkB/s": 1000.0, "w/s": 3.0, "util": 97.5}
BOOT = {"avg-cpu": LOAD | {"idle": 90.0, "iowait": 0.0}, "disk": [DRIVE | {"util": 1.0}]}
LOOP = DRIVE | {"disk_device": "loop0"}
IOSTAT = {
    "sysstat": {
        "hosts": [{
            "nodename": "node1",
            "statistics": [BOOT, {"avg-cpu": LOAD, "disk": [DRIVE, LOOP]}],
        }]
    }
}  # fmt: skip
"""As sysstat 12.7 prints it with -o JSON: ``json_stats.c``."""
FREE = """\
               합계        사용        여분      공유  버퍼/캐시     사용가능
메모리:    65742848     5335040    41176064      524288    19231744    59187200
스왑:       8388604           0     8388604
"""
NVTOP = [
    {
        **{"device_name": "NVIDIA GeForce RTX 4090", "gpu_clock": "2730MHz", "temp": "61C"},
        **{"power_draw": "210W", "gpu_util": "47%", "mem_util": "85%", "mem_total": "25757220864"},
        **{"mem_used": "21890072576", "processes": [{"pid": "4211", "gpu_usage": "45%"}]},
    }
]
"""As nvtop 3.2 prints it with --snapshot: ``extract_gpuinfo.c``."""
XML = """\
<?xml version="1.0" ?>
<nvidia_smi_log>
\t<driver_version>550.54.15</driver_version>
\t<gpu id="00000000:01:00.0">
\t\t<product_name>NVIDIA GeForce RTX 3090</product_name>
\t\t<clocks_event_reasons>
\t\t\t<clocks_event_reason_sw_power_cap>Active</clocks_event_reason_sw_power_cap>
\t\t\t<clocks_event_reason_hw_slowdown>Not Active</clocks_event_reason_hw_slowdown>
\t\t</clocks_event_reasons>
\t\t<fb_memory_usage><total>24576 MiB</total><used>21034 MiB</used></fb_memory_usage>
\t\t<utilization><gpu_util>98 %</gpu_util><memory_util>N/A</memory_util></utilization>
\t\t<temperature><gpu_temp>83 C</gpu_temp></temperature>
\t\t<gpu_power_readings>
\t\t\t<average_power_draw>349.11 W</average_power_draw>
\t\t\t<current_power_limit>350.00 W</current_power_limit>
\t\t</gpu_power_readings>
\t\t<clocks><sm_clock>1515 MHz</sm_clock></clocks>
\t</gpu>
\t<gpu id="00000000:02:00.0"><utilization><gpu_util>3 %</gpu_util></utilization></gpu>
</nvidia_smi_log>
"""
TRAINER_LOG = "".join(
    json.dumps({
        "current_steps": 10 * n, "total_steps": 500, "loss": 1.2, "lr": 1e-05, "epoch": 0.02 * n,
        "percentage": 2.0 * n, "elapsed_time": time, "remaining_time": "0:30:00",
    }) + "\n"
    for n, time in enumerate(("0:00:50", "0:01:30", "0:02:10"), 1)
)  # fmt: skip
"""As LLaMA-Factory 0.9 writes it: ``train/callbacks.py``, LogCallback."""


@pytest.fixture
def read(tmp_path):
    def reading(text):
        path = tmp_path / "it"
        path.write_text(text, encoding="utf-8")
        return files.read(path, "it")

    return reading


def refused(read, text):
    with pytest.raises(UserError) as error:
        read(text)
    assert render(error.value.message, "ko") != error.value.message.id
    return error.value.message.id


def test_gpustat_as_json_is_gpustat(read):
    file, (found,) = read(json.dumps(GPUSTAT, indent=4))
    assert [each.id for each in file.formats] == ["diagnose.format.gpustat"]
    first, second = gpu_readings(found.gpus)
    assert first["utilisation"]["mean"] == 0.98
    assert first["memory_used_bytes"] == 20123 << 20
    assert first["power_limit_w"] == 350
    assert "utilisation" not in second


def test_nvtop_counts_bytes(read):
    file, (found,) = read(json.dumps(NVTOP, indent=1))
    assert [each.id for each in file.formats] == ["diagnose.format.nvtop"]
    (gpu,) = gpu_readings(found.gpus)
    assert (gpu["utilisation"]["mean"], gpu["power_w"]["mean"]) == (0.47, 210)
    assert (gpu["memory_used_bytes"], gpu["memory_total_bytes"]) == (21890072576, 25757220864)
    assert gpu["sm_clock_mhz"]["mean"] == 2730
    assert "memory_utilisation" not in gpu  # its mem_util is what is held


def test_the_report_as_xml_is_the_report(read):
    first, second = gpu_readings(read(XML)[1][0].gpus)
    assert first["name"] == "NVIDIA GeForce RTX 3090"
    assert first["throttled"] == {"power-cap": 1.0}
    assert (first["memory_used_bytes"], first["power_limit_w"]) == (21034 << 20, 350)
    assert (first["sm_clock_mhz"]["mean"], first["temperature_c"]["mean"]) == (1515, 83)
    assert "memory_utilisation" not in first
    assert (first["utilisation"]["mean"], second["utilisation"]["mean"]) == (0.98, 0.03)
    cut = read(XML[: XML.index("<gpu_power")])[1][0].gpus
    assert [sorted(each.readings) for each in cut] == [
        ["memory_total_bytes", "memory_used_bytes", "name", "temperature_c", "utilisation"]
    ]


def test_iostat_as_json_is_iostat_without_the_mean_since_boot(read):
    host = read(json.dumps(IOSTAT))[1][0].facts["host"]
    assert host["utilisation"]["mean"] == pytest.approx(0.6)
    assert host["io_wait"] == pytest.approx(0.2)
    assert host["drive_busy"] == pytest.approx(0.975)
    assert host["read_bytes_s"] == 1000 * 1024  # loop0 stands for another drive


def test_free_speaks_korean(read):
    host = read(FREE)[1][0].facts["host"]
    assert host["memory_total_bytes"] == 65742848 << 10
    assert host["memory_available_bytes"] == 59187200 << 10


def test_the_cache_of_an_old_free_is_not_what_is_available(read):
    text = "             total       used       free     shared    buffers     cached\n"
    host = read(text + "Mem:      65742848 5335040 41176064 524288 100 19231744\n")[1][0].facts[
        "host"
    ]
    assert "memory_available_bytes" not in host


def test_steps_of_llama_factory_take_what_passes_between_its_lines(read):
    assert read(TRAINER_LOG)[1][0].facts["steps"]["seconds"] == pytest.approx(4.0)
    days = TRAINER_LOG.replace("0:01:30", "1 day, 0:00:50").replace("0:02:10", "2 days, 0:00:50")
    assert read(days)[1][0].facts["steps"]["seconds"] == pytest.approx(8640.0)


def test_a_log_that_ends_without_memory_says_what_the_error_asks_for(read):
    log = "".join(f" {n}%|1 | {n}/100 [00:42<34:18,  4.20s/it]\n" for n in (10, 11, 12))
    error = ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a "
             "total capacity of 23.65 GiB of which 1.20 GiB is free.\n")  # fmt: skip
    file, _ = read(log + error)
    (ended,) = [each for each in file.took if each.id == "diagnose.file.log-ended"]
    assert "20.0 GiB" in render(ended, "en")
    assert "--traceback" not in " ".join(render(each, "en") for each in file.missed)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("=== ROCm System Management Interface ===\nGPU  Temp  VRAM%  GPU%\n0  61c  92%  99%\n",
         "diagnose.file-of-amd"),
        ("GPU  XCP  POWER  GFX%  MEM%  VRAM_USAGE\n  0  0  702 W  99 %  40 %  1/191 GB\n",
         "diagnose.file-of-amd"),
        ('{"card0": {"GPU use (%)": "99", "VRAM Total Memory (B)": "1"}}', "diagnose.file-of-amd"),
        ("+------+\n| GPU instances:      |\n|  0  MIG 1g.10gb  19  7  4:1 |\n",
         "diagnose.file-of-mig"),
        (json.dumps(GPUSTAT)[:-20], "diagnose.file-refused"),
        (json.dumps(IOSTAT)[:-20], "diagnose.file-refused"),
        ('{"sysstat": {"hosts": []}}', "diagnose.file-refused"),
        (json.dumps(NVTOP)[:-20], "diagnose.file-refused"),
        ("top - 10:22:31 up 10 days,  load average: 1.52\n%Cpu(s):  3.4 us\n",
         "diagnose.file-of-processes"),
        ("10:22:31 AM   UID   PID    %usr %system  Command\n", "diagnose.file-of-processes"),
        ("  %Own   %Total  OwnTime  TotalTime  Function (filename)\n 61.00%  61.00%\n",
         "diagnose.file-of-profile"),
        ("   ncalls  tottime  percall  cumtime  percall filename:lineno(function)\n",
         "diagnose.file-of-profile"),
        ("# nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 step: 2(factor)\n",
         "diagnose.file-of-benchmark"),
        ("  read: IOPS=3211, BW=3211MiB/s (3367MB/s)(94.1GiB/30001msec)\n",
         "diagnose.file-of-benchmark"),
        ("\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x4 (downgraded)\n",
         "diagnose.file-of-hardware"),
        ("\x18\0\0\0brain.Event:2", "diagnose.file-of-events"),
        ("Filesystem      Size  Used Avail Use% Mounted on\nshm  64M   64M  0 100% /dev/shm\n",
         "diagnose.file-of-hardware"),
        ('"Step","run-1 - train.loss","run-1 - train.loss__MIN"\n15,32,32\n',
         "diagnose.file-of-chart"),
        ("INFO 03-18 10:22:31 [loggers.py:111] Avg prompt throughput: 412.3 tokens/s, Avg "
         "generation throughput: 812.4 tokens/s, Running: 12 reqs\n", "diagnose.file-of-server"),
        ('{"hostname": "a", "gpus": [{"name": 1}]}', "diagnose.file-refused"),
    ],
)  # fmt: skip
def test_what_is_not_read_has_its_reason(read, text, why):
    assert refused(read, text) == why
