# ruff: noqa: E501 - what tools print is as wide as it is
"""The forms that one tool's output has: its versions, options and units, and logs of many loops."""

import json
import shutil
import subprocess

import pytest

from trainwright.diagnose import decide
from trainwright.diagnose.gathering import gather
from trainwright.diagnose.verdict import Cause
from trainwright.messages import LANGUAGES, UserError, render

MIB = 1 << 20
SMI_OLD = """+-----------------------------------------------------------------------------+
| NVIDIA-SMI 440.33.01    Driver Version: 440.33.01    CUDA Version: 10.2     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|===============================+======================+======================|
|   0  Tesla V100-SXM2...  On   | 00000000:00:1E.0 Off |                    0 |
| N/A   52C    P0    66W / 300W |  15503MiB / 16160MiB |     98%      Default |
"""
BUSY = """| NVIDIA-SMI 546.33                 Driver Version: 546.33       CUDA Version: 12.3     |
| GPU  Name                     TCC/WDDM  | Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |         Memory-Usage | GPU-Util  Compute M. |
|   0  NVIDIA GeForce RTX 4090      WDDM  | 00000000:01:00.0  On |                  Off |
| 30%   62C    P2             290W / 450W |  20480MiB / 24564MiB |     97%      Default |
"""
SMI_WINDOWS = """| NVIDIA-SMI 560.94                 Driver Version: 560.94         CUDA Version: 12.6     |
| GPU  Name                  Driver-Model | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|   0  NVIDIA GeForce RTX 4070      WDDM  |   00000000:01:00.0  On |                  N/A |
|  0%   45C    P8              9W /  285W |    1200MiB /  12282MiB |     12%      Default |
"""
SMI_MIG = """| NVIDIA-SMI 570.86.15              Driver Version: 570.86.15      CUDA Version: 12.8     |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|   0  NVIDIA A100-SXM4-80GB          On  |   00000000:07:00.0 Off |                   On |
| N/A   36C    P0            105W /  400W |   20000MiB /  81920MiB |     N/A      Default |
| MIG devices:                                                                            |
|  0    1   0   0  |           19000MiB / 40192MiB    | 42      0 |  3   0    2    0    0 |
"""
QUERY = """index, utilization.gpu [%], memory.used [MiB], power.draw.instant [W], clocks_event_reasons.active
0, 35, 10000, 180.21, 0x0000000000000000
1, 36, 10010, 181.21, 0x0000000000000004
0, 37, 10000, 179.21, 0x0000000000000000
"""
APPS = "pid, process_name, used_gpu_memory [MiB]\n4242, python, 10000 MiB\n4243, python, 500 MiB\n"
DMON_DATED = """#Date       Time        gpu    pwr  gtemp  mtemp     sm    mem
#YYYYMMDD   HH:MM:SS    Idx      W      C      C      %      %
 20240304   12:00:01      0    161     45      -     40     12
 20240304   12:00:02      0    165     46      -     42     12
"""
DMON_BUS = """# gpu    pwr  gtemp     sm    mem  rxpci  txpci
# Idx      W      C      %      %   MB/s   MB/s
    0    161     45     40     12   2100    310
"""
DMON_CSV = "#gpu, pwr, gtemp, mtemp, sm, mem\n#Idx, W, C, C, %, %\n0, 161, 45, -, 40, 12\n"
PMON_MEMORY = """# gpu         pid   type     fb   ccpm    command
# Idx           #    C/G     MB     MB    name
    0       4242     C  10000      0    python
"""
PMON_SHARED = """# gpu         pid   type     sm    mem    enc    dec    command
# Idx           #    C/G      %      %      %      %    name
    0       2210     G      2      1      -      -    Xorg
    0       4242     C     50     18      -      -    python
    0       4243     C     30     11      -      -    python train.py
    1       4244     C     90     40      -      -    python
    0       4242     C     54     18      -      -    python
    0       4243     C     34     11      -      -    python train.py
    1       4244     C     92     40      -      -    python
"""
DMON_HELD = """# gpu    pwr  gtemp     sm    mem  pviol  tviol
# Idx      W      C      %      %      %   bool
    0    249     84     99     72     70      1
    0    250     85    100     71     20      1
"""
REPORT_HOT = """==============NVSMI LOG==============
GPU 00000000:17:00.0
    Product Name                : NVIDIA GeForce RTX 3090
    Clocks Event Reasons
        SW Power Cap            : Active
        HW Slowdown             : Not Active
            HW Thermal Slowdown : Not Active
    Utilization
        Gpu                     : 100 %
    Temperature
        GPU Current Temp        : 71 C
    GPU Power Readings
        Power Draw              : 349.10 W
        Current Power Limit     : 350.00 W
    Clocks
        SM                      : 1695 MHz
    Max Clocks
        SM                      : 2100 MHz
GPU 00000000:65:00.0
    Product Name                : NVIDIA GeForce RTX 3090
    Clocks Event Reasons
        SW Power Cap            : Not Active
        HW Slowdown             : Active
            HW Thermal Slowdown : Active
    Utilization
        Gpu                     : 96 %
    Temperature
        GPU Current Temp        : 93 C
    GPU Power Readings
        Power Draw              : 190.10 W
        Current Power Limit     : 350.00 W
    Clocks
        SM                      : 900 MHz
    Max Clocks
        SM                      : 2100 MHz
"""
WANDB_CHART = """"Relative Time (Process)","brisk-sun-3 - system/gpu.0.gpu","brisk-sun-3 - system/gpu.0.gpu__MIN","calm-sea-4 - system/gpu.0.gpu"
"0.5","30","30","99"
"15.5","20","20","98"
"""
WANDB_TABLE = """,system.gpu.0.gpu,system.gpu.0.powerWatts,system.cpu,_runtime
0,30,120.5,12.0,15.1
1,20,,14.0,30.1
"""
METRICS_CSV = (
    "_step,_runtime,train/loss,perf/step_time,perf/data_time_ms,train/samples_per_second\n0,9,2.31,9.1,8200,7\n"
    + "".join(f"{at},{9 + at},2.2,1.4,900,45\n" for at in range(1, 6))
)
SCALARS = "Wall time,Step,Value\n1710208801.1,0,2.31\n1710208811.1,10,2.21\n1710208821.1,20,2.11\n1710208861.1,30,2.01\n"
RESULTS = "epoch,time,train/box_loss\n1,2500,1.21\n2,5000,1.20\n3,7500,1.19\n4,10000,1.18\n"
TYPEPERF = """"(PDH-CSV 4.0)","\\\\LAB3\\Processor(_Total)\\% Processor Time","\\\\LAB3\\PhysicalDisk(0 C:)\\% Idle Time","\\\\LAB3\\Memory\\Available MBytes","\\\\LAB3\\GPU Engine(pid_51_luid_0x0_0xC2D5_phys_0_eng_0_engtype_Compute_0)\\Utilization Percentage"
"03/12/2024 10:20:01.123","90.5","20.0","2048","31.0"
"03/12/2024 10:20:02.123","91.5","10.0","1024","29.0"
"""
GET_COUNTER = r"""
Timestamp                 CounterSamples
---------                 --------------
3/12/2024 10:20:01 AM     \\lab3\processor(_total)\% processor time :
                          97.5

                          \\lab3\gpu adapter memory(luid_0x0_0x0000c2d5_phys_0)\shared usage :
                          15000000000

"""
TASK_MANAGER = """GPU 0

\tNVIDIA GeForce RTX 3090

\tDriver version:\t31.0.15.5222

\tUtilization\t8%
\tDedicated GPU memory\t23.2/24.0 GB
\tShared GPU memory\t14.0/31.9 GB
\tGPU Memory\t37.2/55.9 GB
"""
TASK_MANAGER_KO = """CPU

\tAMD Ryzen 9 5950X 16-Core Processor

\t논리 프로세서:\t32
\t사용률\t9%
GPU 1

\tNVIDIA GeForce RTX 2080 Ti

\t사용률\t3%
\t전용 GPU 메모리\t10.8/11.0GB
\t공유 GPU 메모리\t6.0/16.0GB
"""
TOPO = """\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tPHB\t0-15\t0\t\tN/A
GPU1\tPHB\t X \t0-15\t0\t\tN/A
"""
REPORT = """
==============NVSMI LOG==============
Attached GPUs                                          : 1
GPU 00000000:07:00.0
    Performance State                                  : P0
    Clocks Event Reasons
        SW Power Cap                                   : Not Active
        HW Slowdown                                    : Active
            HW Power Brake Slowdown                    : Active
"""
GPUSTAT = "node01  Mon Mar  4 12:00:01 2024  550.54.15\n[0] NVIDIA A100-SXM4-80GB | 61°C,  97 % | 70000 / 81920 MB | user(69000M)\n"
PY_SPY_LOCALS = """Process 4242: python train.py
Python v3.11.7 (/usr/bin/python3.11)

Thread 4242 (active): "MainThread"
    0x7f1c2d3e4f50 (libcuda.so.550.54.15)
    c10::cuda::device_synchronize() (libc10_cuda.so)
    item (torch/_tensor.py:45)
        Arguments:
            self: <Tensor at 0x7f>
    train (train.py:88)
"""
PY_SPY_RAW = """<module> (train.py:120);train (train.py:88);__next__ (torch/utils/data/dataloader.py:633) 80
<module> (train.py:120);train (train.py:90);backward (torch/_tensor.py:520) 20
"""
IOSTAT = """Linux 6.5.0 (host) \t03/04/24 \t_x86_64_\t(16 CPU)

avg-cpu:  %user   %nice %system %iowait  %steal   %idle
           1.00    0.00    1.00    0.00    0.00   98.00

Device             tps    kB_read/s    kB_wrtn/s    kB_dscd/s    kB_read    kB_wrtn    kB_dscd
nvme0n1           1.00        10.00        10.00         0.00      10000      10000          0

avg-cpu:  %user   %nice %system %iowait  %steal   %idle
          20.00    0.00    5.00   30.00    0.00   45.00

Device             tps    kB_read/s    kB_wrtn/s    kB_dscd/s    kB_read    kB_wrtn    kB_dscd
nvme0n1        1000.00    102400.00        10.00         0.00     102400         10          0
"""
IOSTAT_OLD = """Device:         rrqm/s   wrqm/s     r/s     w/s    rkB/s    wkB/s avgrq-sz avgqu-sz   await  svctm  %util
sda               0.00     1.00  200.00    1.00 20480.00    10.00   204.80    10.00   50.00   4.90  99.10
"""
VMSTAT_WIDE = """--procs-- -----------------------memory---------------------- ---swap-- -----io---- -system-- ----------cpu---------- -----timestamp-----
   r    b         swpd         free         buff        cache   si   so    bi    bo   in   cs  us  sy  id  wa  st  gu                 UTC
   9    0            0     15239080       349632      6431408    0    0 16400   953  378  694  62   5  33   0   0   0 2026-11-29 12:17:58
  10    0            0     15239080       349632      6431408    0    0  1024   276  746 1104  20   5  45  30   0   0 2026-11-29 12:17:59
"""
FREE = """               total        used        free      shared     buffers       cache   available
Mem:            62Gi        58Gi       512Mi       1.2Gi       1.0Gi       3.0Gi       2.0Gi
"""
DSTAT = """----total-usage---- -dsk/total- -net/total- ---paging-- ---system--
usr sys idl wai stl| read  writ| recv  send|  in   out | int   csw
  1   0  99   0   0|  12k  310k|   0     0 |   0     0 | 900   15k
 12   3  62  23   0| 402M  310k|  12k   33k|   0     0 |9100    15k
 12   3  60  25   0| 398M  280k|  11k   31k|  2M     0 |9000    15k
"""
NVTOP = """ Device 0 [NVIDIA GeForce RTX 3090] PCIe GEN 4@16x RX: 1.213 GiB/s TX: 110.1 MiB/s
 GPU 1695MHz MEM 9501MHz TEMP  67°C FAN  55% POW 301 / 350 W
 GPU[||||||||||||||             45%] MEM[||||||||||||||||||21.004Gi/24.000Gi]
"""
WANDB = "\n".join(
    json.dumps({"system.gpu.0.gpu": 30 + n, "system.gpu.0.memory": 12, "system.gpu.0.temp": 60, "system.gpu.0.powerWatts": 180.0,
                "system.gpu.process.0.gpu": 1, "system.cpu": 50.0, "_wandb": True, "_timestamp": 1700000000 + n})
    for n in range(5)
)  # fmt: skip
LIGHTNING = """FIT Profiler Report

-----------------------------------------------------------------------------------------------
|  Action                                         |  Mean duration (s)\t|  Num calls      \t|  Total time (s) \t|  Percentage %   \t|
-----------------------------------------------------------------------------------------------
|  Total                                          |  -              \t|  9021           \t|  100.0          \t|  100 %          \t|
|  run_training_epoch                             |  98.0           \t|  1              \t|  98.0           \t|  98.0           \t|
|  [_TrainingEpochLoop].train_dataloader_next     |  0.6            \t|  100            \t|  60.0           \t|  60.0           \t|
|  run_training_batch                             |  0.35           \t|  100            \t|  35.0           \t|  35.0           \t|
|  [LightningModule]Net.optimizer_step            |  0.34           \t|  100            \t|  34.0           \t|  34.0           \t|
|  [Strategy]SingleDeviceStrategy.training_step   |  0.10           \t|  100            \t|  10.0           \t|  10.0           \t|
|  [Strategy]SingleDeviceStrategy.backward        |  0.20           \t|  100            \t|  20.0           \t|  20.0           \t|
|  [Strategy]SingleDeviceStrategy.batch_to_device |  0.05           \t|  120            \t|  6.0            \t|  6.0            \t|
"""
DEEPSPEED = """[Rank 0] time (ms) | fwd_microstep: 60.10 | bwd_microstep: 120.20 | bwd_inner_microstep: 115.10 | bwd_allreduce_microstep: 5.05 | step_microstep: 6.30
[Rank 0] time (ms) | fwd: 120.00 | bwd: 240.10 | bwd_inner: 230.00 | bwd_allreduce: 10.00 | step: 40.00
"""
MEGATRON = """ iteration       20/     100 | consumed samples: 5120 | elapsed time per iteration (ms): 2000.0 | global batch size: 1024 |
(min, max) time across ranks (ms):
    forward-backward ...............................: (1500.10, 1510.20)
    forward-compute ................................: (500.00, 510.20)
    backward-compute ...............................: (900.00, 910.20)
    batch-generator ................................: (10.00, 15.20)
    optimizer ......................................: (200.00, 201.20)
"""
TRAINER = """Generating train split: 10000 examples [00:00, 512345.12 examples/s]
Map (num_proc=8): 100%|##########| 10000/10000 [00:05<00:00, 1900.12 examples/s]
Loading checkpoint shards: 100%|##########| 3/3 [00:07<00:00,  2.50s/it]
  1%|          | 10/1000 [00:05<08:15,  2.00it/s]
{'loss': '2.312', 'grad_norm': '1.21', 'learning_rate': '5e-05', 'epoch': '0.01'}
"""
EPOCHS = """Epoch:  10%|#         | 1/10 [05:00<45:00, 300.00s/it]
Iteration:  10%|#         | 10/100 [00:05<00:45,  2.00it/s]
"""
NOTEBOOK = "[ 30/1000 00:33 < 18:00, 0.80 it/s, Epoch 0.03/1]\n[ 40/1000 00:45 < 18:00, 0.80 it/s, Epoch 0.04/1]\n"
YOLO = """train: Scanning /data/labels/train.cache... 1000 images, 0 corrupt: 100%|##########| 1000/1000 [00:00<00:00, 2000.0it/s]
      1/100      3.21G      1.123      2.345      1.234         33        640: 100%|##########| 500/500 [02:05<00:00,  4.00it/s]
"""
TITAN = "[rank0]:[titan] 2024-03-04 12:00:01,100 - root - INFO - step: 10  loss:  7.1234  memory: 60.11GiB(75.9%)  tps: 6,012  tflops: 301.10  mfu: 30.45%\n"
KERAS = (
    " 100/1563 [>.....] - ETA: 1:05 - loss: 1.9\n1563/1563 [=====] - 68s 43ms/step - loss: 1.5\n"
)
FAIRSEQ = "2024-03-05 10:00:00 | INFO | train_inner | epoch 001:    100 / 5000 loss=10.1, ppl=1100, wps=35000, ups=2.5, wpb=16000, bsz=512\n"
COMPOSER = "[batch=100/4800]:\n\t Train time/batch: 100\n\t Train throughput/batches_per_sec: 0.4\n\t Train throughput/samples_per_sec: 52.7\n"
PARTS = "Epoch 1, Step 10: loss=2.31, data=0.90s, fwd=0.10s, bwd=0.20s, opt=0.05s\n"
UNITS = "2024-03-05T10:00:01 INFO trainer: step=10 loss=2.1 step_time_ms=250.5 data_time_ms=200.1 fwd_ms=30 lr=1e-4\n"
METRICS = "***** train metrics *****\n  train_runtime            = 0:13:32.30\n  train_samples_per_second =      12.31\n  train_steps_per_second   =      0.8\n"
TABLE_MEMORY = """---------------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------
                 Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg       CPU Mem    # of Calls
---------------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------
         aten::conv2d         0.10%       1.000ms        60.00%     600.000ms       6.000ms       1.00 Gb           100
Optimizer.step#SGD.step       10.00%     100.000ms        20.00%     200.000ms      20.000ms         0 b            10
---------------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------
Self CPU time total: 1.000s
"""
TABLE_XPU = """---------------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------
                 Name    Self CPU %      Self CPU     CPU total     Self XPU     Self XPU %     XPU total    # of Calls
---------------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------
        ProfilerStep*         3.00%      30.000ms       1.000s       0.000us         0.00%     900.000ms            10
             aten::mm         2.00%      20.000ms      30.000ms     700.000ms        77.78%     700.000ms          1000
---------------------  ------------  ------------  ------------  ------------  ------------  ------------  ------------
Self CPU time total: 1.000s
Self XPU time total: 900.000ms
"""

FORMS = {
    "nvidia-smi 440": (SMI_OLD, {"gpus.0.utilisation.mean": 0.98, "gpus.0.memory_total_bytes": 16160 * MIB}),
    "nvidia-smi on Windows": (SMI_WINDOWS, {"gpus.0.utilisation.mean": 0.12, "gpus.0.power_limit_w": 285}),
    "nvidia-smi, a GPU's lines alone": ("Tue Mar  4 10:22:31 2025\n" + "\n".join(SMI_OLD.splitlines()[-2:]) + "\n", {"gpus.0.utilisation.mean": 0.98}),
    "nvidia-smi with MIG": (SMI_MIG, {"gpus.0.utilisation": None, "gpus.0.power_w.mean": 105}),
    "nvidia-smi --query-gpu, nounits": (QUERY, {"gpus.0.power_w.mean": 179.71, "gpus.1.throttled": {"power-cap": 1.0}}),
    "nvidia-smi --query-compute-apps": (APPS, {"gpus": None}),
    "nvidia-smi -q -d PERFORMANCE": (REPORT, {"gpus.0.throttled": {"hardware-slowdown": 1.0, "power-brake": 1.0}}),
    "nvidia-smi dmon -o DT": (DMON_DATED, {"gpus.0.utilisation.mean": 0.41}),
    "nvidia-smi dmon -s put": (DMON_BUS, {"gpus.0.received_bytes_s": 2.1e9, "gpus.0.sent_bytes_s": 3.1e8}),
    "nvidia-smi dmon --format csv": (DMON_CSV, {"gpus.0.power_w.mean": 161}),
    "nvidia-smi pmon -s m": (PMON_MEMORY, {"gpus.0.utilisation": None}),
    "nvidia-smi pmon, two on one GPU": (PMON_SHARED, {"gpus.0.utilisation": None, "gpus.0.foreign_utilisation": 0.32, "gpus.0.foreign_processes": 1, "gpus.1.utilisation.mean": 0.91}),
    "nvidia-smi dmon -s puv": (DMON_HELD, {"gpus.0.throttled": {"power-cap": 0.5, "thermal": 1.0}}),
    "a chart of W&B": (WANDB_CHART, {"gpus.0.utilisation.mean": 0.25}),
    "run.history of W&B as CSV": (WANDB_TABLE, {"gpus.0.utilisation.mean": 0.25, "gpus.0.power_w.mean": 120.5, "host.utilisation.mean": 0.13}),
    "metrics as CSV": (METRICS_CSV, {"steps.seconds": 1.4, "steps.data_wait": 0.9, "throughput.samples_s": 45}),
    "a scalar of TensorBoard": (SCALARS, {"steps.seconds": 1.0, "steps.steps": 30, "steps.unit": None}),
    "results.csv of ultralytics": (RESULTS, {"steps.seconds": 2500, "steps.steps": 3, "steps.unit": "epoch"}),
    "typeperf": (TYPEPERF, {"host.utilisation.mean": 0.91, "host.drive_busy": 0.85, "host.memory_available_bytes": 1 << 30, "gpus.0.utilisation.mean": 0.3}),
    "Get-Counter": (GET_COUNTER, {"host.utilisation.mean": 0.975, "gpus.0.memory_shared_bytes": 15e9}),
    "Task Manager": (TASK_MANAGER, {"gpus.0.memory_shared_bytes": 14 << 30, "gpus.0.memory_total_bytes": 24 << 30, "gpus.0.utilisation": None}),
    "Task Manager in Korean": (TASK_MANAGER_KO, {"gpus.0.memory_shared_bytes": 6 << 30, "host.cores": 32, "host.utilisation.mean": 0.09}),
    "nvidia-smi topo -m": (TOPO, {"setup.link": "pcie"}),
    "nvidia-smi topo -m, NVLink": (TOPO.replace("PHB", "NV12"), {"setup.link": "nvlink"}),
    "gpustat": (GPUSTAT, {"gpus.0.utilisation.mean": 0.97, "gpus.0.memory_used_bytes": 70000 * MIB}),
    "dstat": (DSTAT, {"host.io_wait": 0.24, "host.read_bytes_s": 400 << 20, "host.utilisation.mean": 0.15, "host.swapped_bytes_s": 1 << 20}),
    "nvtop": (NVTOP, {"gpus.0.utilisation.mean": 0.45, "gpus.0.power_w.mean": 301, "gpus.0.memory_total_bytes": 24 << 30}),
    "W&B": (WANDB, {"gpus.0.utilisation.mean": 0.32, "gpus.0.power_w.mean": 180, "host.utilisation.mean": 0.5}),
    "py-spy dump --native --locals": (PY_SPY_LOCALS, {"profile": None}),
    "py-spy record -f raw": (PY_SPY_RAW, {"profile.host_top.0.share": 1.0, "profile.host_top.2.share": 0.8}),
    "iostat": (IOSTAT, {"host.io_wait": 0.3, "host.read_bytes_s": 102400 * 1024}),
    "iostat -x before sysstat 12": (IOSTAT_OLD, {"host.drive_busy": 0.991, "host.read_bytes_s": 20480 * 1024}),
    "vmstat -w -t": (VMSTAT_WIDE, {"host.io_wait": 0.3, "host.read_bytes_s": 1 << 20}),
    "free -h -w": (FREE, {"host.memory_total_bytes": 62 << 30, "host.memory_available_bytes": 2 << 30}),
    "key_averages with memory": (TABLE_MEMORY, {"steps.steps": 10, "steps.seconds": 0.1}),
    "key_averages of XPU": (TABLE_XPU, {"setup.device": "xpu", "steps.device_seconds": 0.09}),
    "Lightning's simple profiler": (LIGHTNING, {"steps.seconds": 1.0, "steps.data_wait": 0.6, "steps.transfer": 0.05, "steps.forward": 0.1,
                                                "steps.backward": 0.2, "steps.optimizer": 0.04}),
    "DeepSpeed, wall_clock_breakdown": (DEEPSPEED, {"steps.seconds": 0.4, "steps.forward": 0.12, "steps.backward": 0.23,
                                                    "steps.communication": 0.01, "steps.optimizer": 0.04}),
    "Megatron's timers": (MEGATRON, {"steps.seconds": 2.0, "steps.forward": 0.5, "steps.backward": 0.9, "steps.optimizer": 0.2,
                                     "steps.data_wait": 0.01}),
    "transformers' Trainer": (TRAINER, {"steps.seconds": 0.5, "throughput.samples_s": None}),
    "transformers' Trainer in a notebook": (NOTEBOOK, {"steps.seconds": 1.25}),
    "transformers' metrics": (METRICS, {"throughput.samples_s": 12.31, "steps.seconds": 1.25}),
    "bars of epochs and steps": (EPOCHS, {"steps.seconds": 0.5}),
    "ultralytics": (YOLO, {"steps.seconds": 0.25}),
    "torchtitan": (TITAN, {"throughput.tokens_s": 6012}),
    "torchtitan, several lines": (TITAN * 5, {"throughput.tokens_s": 6012}),
    "fairseq": (FAIRSEQ, {"steps.seconds": 0.4, "throughput.tokens_s": 35000}),
    "Composer": (COMPOSER, {"steps.seconds": 2.5, "throughput.samples_s": 52.7}),
    "a loop's own parts": (PARTS, {"steps.seconds": 1.25, "steps.data_wait": 0.9, "steps.optimizer": 0.05}),
    "names with their units": (UNITS * 5, {"steps.seconds": 0.2505, "steps.data_wait": 0.2001, "steps.forward": 0.03}),
    "names of units alone": ("step_ms: 250 loss: 2.1\n" * 5, {"steps.seconds": 0.25}),
    "Keras": (KERAS, {"steps.seconds": 0.043}),
}  # fmt: skip


def read(tmp_path, text):
    path = tmp_path / "output.txt"
    path.write_text(text, encoding="utf-8")
    found = gather([path])
    for language in LANGUAGES:
        sentences = [*found.files[0].formats, *found.files[0].took, *found.files[0].missed]
        assert all("diagnose." not in render(each, language) for each in sentences)
    return found


@pytest.mark.parametrize("tool", FORMS)
def test_each_form_is_read_as_its_tool_means_it(tmp_path, tool):
    text, expected = FORMS[tool]
    evidence = read(tmp_path, text).evidence.model_dump(mode="json", exclude_defaults=True)
    for path, value in expected.items():
        held = evidence
        for key in path.split("."):
            held = held[int(key)] if isinstance(held, list) else (held or {}).get(key)
        assert held == (pytest.approx(value) if isinstance(value, float | int) else value), path


def test_the_sum_of_the_passes_is_not_called_a_step_in_silence(tmp_path):
    missed = [each.id for each in read(tmp_path, DEEPSPEED).files[0].missed]
    assert "diagnose.file.log-summed" in missed


@pytest.mark.parametrize("text", [VMSTAT_WIDE, IOSTAT])
def test_the_mean_since_boot_is_only_said_of_a_report_that_is_one(tmp_path, text):
    assert "diagnose.file.since-boot" not in [m.id for m in read(tmp_path, text).files[0].took]
    alone = text[: text.index("  10    0") if text is VMSTAT_WIDE else text.rindex("avg-cpu")]
    assert "diagnose.file.since-boot" in [m.id for m in read(tmp_path, alone).files[0].took]


@pytest.mark.skipif(shutil.which("vmstat") is None, reason="this computer has no vmstat")
@pytest.mark.parametrize("options", [[], ["-w"], ["-t"], ["-a"]])
def test_vmstat_of_this_computer_is_read(tmp_path, options):
    run = subprocess.run(["vmstat", *options], capture_output=True, text=True, check=True)
    assert read(tmp_path, run.stdout).evidence.host.utilisation is not None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (APPS.splitlines()[1] + "\n", "diagnose.file-unknown"),
        (TOPO.replace("PHB", "???"), "diagnose.file-refused"),
        (TOPO.splitlines()[0], "diagnose.file-refused"),
        (WANDB.splitlines()[0][:60], "diagnose.file-refused"),
        ("[" * 100_000 + ' "gpu.0.gpu"', "diagnose.file-unknown"),
        ('["gpu.0.gpu"' + "[" * 50_000, "diagnose.file-refused"),
        ('{"gpu.0.gpu": true}\n{"gpu.0.gpu": -5}\n[1, null]', "diagnose.file-refused"),
        (LIGHTNING[: LIGHTNING.index("|  run_training_batch")], "diagnose.file-refused"),
        (LIGHTNING.replace("100            \t", "-              \t"), "diagnose.file-refused"),
        (PY_SPY_RAW.replace(" 80", " 0").replace(" 20", " 0"), "diagnose.file-refused"),
        (VMSTAT_WIDE[: VMSTAT_WIDE.index("   9    0")], "diagnose.file-refused"),
        (TYPEPERF.splitlines()[0] + "\n", "diagnose.file-refused"),
        (
            WANDB_CHART.replace('"30","30","99"', '"","",""').splitlines()[0] + '\n"1","","",""\n',
            "diagnose.file-refused",
        ),
        ("{'loss': 2.3, 'epoch': 0.01}\n{'loss': 2.2, 'epoch': 0.02}\n", "diagnose.file-no-times"),
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
            "diagnose.file-is-error",
        ),
        ("Epochs: 10%|#         | 1/10 [05:00<45:00, 300.00s/it]\n", "diagnose.file-unknown"),
    ],
)
def test_what_is_cut_off_or_says_nothing_is_refused_with_its_reason(tmp_path, text, reason):
    with pytest.raises(UserError) as refused:
        read(tmp_path, text)
    assert refused.value.message.id == reason
    assert "diagnose." not in render(refused.value.message, "ko")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "  PID USER      PRI  NI  VIRT   RES   SHR S CPU%\n 42 mira 20 0 42G R 100\n",
            "processes",
        ),
        (
            "# Samples: 2K of event 'cycles'\n# Overhead  Command  Symbol\n  41.2%  python\n",
            "profile",
        ),
        ("Job ID: 8\nCPU Efficiency: 6.12% of 6-22:44:48 core-walltime\n", "jobs"),
        ("JobID|JobName|Elapsed|TotalCPU\n8|train|10:25:18|10:12:11\n", "jobs"),
        ('"Step","brisk-sun-3 - train/loss"\n"0","2.3"\n"1","2.2"\n', "chart"),
    ],
)
def test_what_tools_list_that_explains_no_step_is_refused_by_what_it_is(tmp_path, text, reason):
    with pytest.raises(UserError) as refused:
        read(tmp_path, text)
    assert refused.value.message.id == f"diagnose.file-of-{reason}"


def test_a_table_of_words_or_of_losses_alone_has_no_times(tmp_path):
    with pytest.raises(UserError) as losses:
        read(tmp_path, "epoch,step,train_loss\n0,9,2.3\n0,19,2.2\n0,29,2.1\n")
    assert losses.value.message.id == "diagnose.file-no-times"
    for text in ("name,time\nmira,noon\njun,dusk\n", "step,step_time\n1,-3\n2,-4\n"):
        with pytest.raises(UserError):
            read(tmp_path, text)


def test_a_gpu_that_heat_slows_is_not_blamed_on_its_board(tmp_path):
    """The slowdown of the hardware is its heat's, and the other GPU's power limit is its own."""
    verdicts = decide.judge(read(tmp_path, REPORT_HOT).evidence).verdicts
    assert (verdicts[0].cause, verdicts[0].variant) == (Cause.SCHEDULING, "heat")
    assert all("by-board" not in each.says.id for each in verdicts)
    braked = decide.judge(
        read(tmp_path, REPORT_HOT.replace("HW Thermal", "HW Power Brake")).evidence
    )
    assert any("by-board" in each.says.id for each in braked.verdicts)


def test_two_trainings_on_one_gpu_are_named(tmp_path):
    first = decide.judge(read(tmp_path, PMON_SHARED).evidence).first
    assert (first.cause, first.variant) == (Cause.SCHEDULING, "other-programs-gpu")


def test_two_trainings_in_the_memory_of_one_gpu_are_named(tmp_path):
    """The second GPU has one process, and a rank's context on the first is no other program."""
    rows = [(0, 4242, 12000), (0, 4243, 11000), (0, 4244, 500), (1, 4244, 12000)]
    listed = "".join(
        f"|    {gpu}   N/A  N/A   {pid}      C   python          {held}MiB |\n"
        for gpu, pid, held in rows
    )
    gpus = read(tmp_path, BUSY + listed).evidence.gpus
    assert gpus[0].foreign_memory_bytes == 11000 * MIB
    assert gpus[0].foreign_processes == 1
    first = decide.judge(read(tmp_path, BUSY + listed).evidence).first
    assert (first.cause, first.variant) == (Cause.SCHEDULING, "other-programs-gpu")
    alone = BUSY + "".join(f"{row}\n" for row in listed.splitlines() if "4243" not in row)
    assert read(tmp_path, alone).evidence.gpus[0].foreign_processes is None


def test_memory_that_spills_on_windows_is_named(tmp_path):
    first = decide.judge(read(tmp_path, TASK_MANAGER).evidence).first
    assert first.cause is Cause.MEMORY
    # Expandable segments do not exist on Windows, and less at once is what helps.
    fixes = [fix.says.id.removeprefix("diagnose.fix.") for fix in first.fixes]
    assert "fewer-samples" in fixes
    assert "expandable" not in fixes


@pytest.mark.parametrize("text", [BUSY, SMI_MIG, GPUSTAT])
def test_a_glance_at_a_busy_gpu_is_no_verdict_on_the_run(tmp_path, text):
    first = decide.judge(read(tmp_path, text).evidence).first
    assert first.cause in (Cause.UNKNOWN, Cause.NONE)
