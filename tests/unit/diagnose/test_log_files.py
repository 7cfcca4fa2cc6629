# ruff: noqa: E501 - what tools print is as wide as it is
"""Logs of training loops: the lines that the loops' own code prints."""

import pytest

from trainwright.diagnose import texts
from trainwright.diagnose.decide import judge
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.readers import training_log
from trainwright.diagnose.verdict import Cause


def read(text):
    assert training_log.read(text)
    return training_log.read(text)


IMAGENET = """Epoch: [0][ 10/5005]  Time  2.831 ( 3.120)  Data  2.512 ( 2.790)  Loss 6.9e+00
Epoch: [0][ 20/5005]  Time  2.790 ( 2.910)  Data  2.470 ( 2.590)  Loss 6.9e+00
"""
TIMM = """Train: 0 [   0/1251 (  0%)]  Loss: 6.95 (6.95)  Time: 4.052s,  63.01/s  (4.052s,  63.01/s)  LR: 1.000e-05  Data: 3.010 (3.010)
Train: 0 [  50/1251 (  4%)]  Loss: 6.95 (6.95)  Time: 0.452s,  566.01/s  (0.480s,  533.21/s)  LR: 1.000e-05  Data: 0.010 (0.050)
Train: 0 [ 100/1251 (  8%)]  Loss: 6.90 (6.92)  Time: 0.448s,  571.01/s  (0.470s,  544.21/s)  LR: 1.000e-05  Data: 0.012 (0.040)
Train: 0 [ 150/1251 ( 12%)]  Loss: 6.90 (6.92)  Time: 0.450s,  571.01/s  (0.470s,  544.21/s)  LR: 1.000e-05  Data: 0.011 (0.040)
"""
TORCHVISION = """Epoch: [0]  [  10/5005]  eta: 1:02:03  lr: 0.1 img/s: 60.1 (58.2)  loss: 6.9 (7.0)  time: 0.5012 (0.6000)  data: 0.0102 (0.1023)  max mem: 7000
"""
MMENGINE = """03/04 12:00:01 - mmengine - INFO - Epoch(train)  [1][  50/5862]  lr: 1.9e-03  eta: 1 day, 2:03:04  time: 0.8123  data_time: 0.3523  memory: 3847  loss: 2.3
"""
DETECTRON = """[03/04 12:00:01 d2.utils.events]:  eta: 11:00:00  iter: 19  total_loss: 5.1  time: 0.5000  last_time: 0.4  data_time: 0.2000  last_data_time: 0.1  lr: 1e-4  max_mem: 2000M
"""
MEGATRON = """ iteration      100/  500000 | consumed samples:       102400 | elapsed time per iteration (ms): 1234.5 | throughput per GPU (TFLOP/s/GPU): 123.4 | learning rate: 1.0E-04 | global batch size:  1024 |
 iteration      200/  500000 | consumed samples:       204800 | elapsed time per iteration (ms): 1236.5 | throughput per GPU (TFLOP/s/GPU): 123.4 | learning rate: 1.0E-04 | global batch size:  1024 |
"""
NANOGPT = "iter 10: loss 4.5012, time 250.31ms, mfu 12.30%\niter 20: loss 4.4012, time 249.69ms, mfu 12.31%\n"
JSON_LINES = '{"step": 10, "step_time": 1.2, "data_time": 0.9}\n{"step": 20, "step_time": 1.2, "data_time": 0.7}\n'
NEMO = """Training epoch 0, iteration 9/999 | lr: 1.2e-06 | global_step: 9 | reduced_train_loss: 11.02 | train_step_timing in s: 4.812 | consumed_samples: 1280
Training epoch 0, iteration 19/999 | lr: 2.4e-06 | global_step: 19 | reduced_train_loss: 9.02 | train_step_timing in s: 4.712 | consumed_samples: 2560
"""
VERL = """step:1 - actor/entropy:0.512 - timing_s/gen:41.2 - timing_s/update_actor:30.2 - timing_s/step:91.2 - perf/throughput:812.2
step:2 - actor/entropy:0.502 - timing_s/gen:40.2 - timing_s/update_actor:30.1 - timing_s/step:90.2 - perf/throughput:821.2
"""
PLAIN = """step 10 loss 2.31 it/s 0.8 data_time 0.95s batch_time 1.21s gpu_util 22%
step 20 loss 2.11 it/s 0.8 data_time 0.97s batch_time 1.22s gpu_util 20%
"""


@pytest.mark.parametrize(
    ("text", "seconds", "waited"),
    [
        (IMAGENET, 2.8105, 2.491),
        (TIMM, 0.45, 0.011),
        (TORCHVISION, 0.5012, 0.0102),
        (MMENGINE, 0.8123, 0.3523),
        (DETECTRON, 0.5, 0.2),
        (MEGATRON, 1.2355, None),
        (NANOGPT, 0.25, None),
        (JSON_LINES, 1.2, 0.8),
        (PLAIN, 1.215, 0.96),
        (NEMO, 4.762, None),
        (VERL, 90.2, None),
    ],
)
def test_step_and_data_time_of_each_loop(text, seconds, waited):
    steps = read(text).facts["steps"]
    assert steps["seconds"] == pytest.approx(seconds)
    assert steps.get("data_wait") == (None if waited is None else pytest.approx(waited))


def test_bars_give_a_rate_and_say_that_data_time_is_missing():
    bar = "\r".join(
        f" {n}%|##        | {n * 5}/500 [00:{n:02}<09:00,  1.25s/it]" for n in range(10, 20)
    )
    found = read(texts.plain(bar))
    assert found.facts["steps"]["seconds"] == pytest.approx(1.25)
    assert "diagnose.file.log-no-data" in [each.id for each in found.missed]
    lightning = "Epoch 0:  10%|█         | 50/500 [00:30<04:30,  1.60it/s, v_num=0, train_loss=2.3]"
    assert read(lightning).facts["steps"]["seconds"] == pytest.approx(1 / 1.6)


def test_the_trainers_last_line_gives_throughput():
    text = (
        "{'loss': 1.23, 'grad_norm': 2.1, 'learning_rate': 5e-05, 'epoch': 0.1}\n"
        "{'train_runtime': 123.4, 'train_samples_per_second': 81.0, 'train_steps_per_second': 1.25,"
        " 'train_loss': 1.2, 'epoch': 3.0}\n"
    )
    facts = read(text).facts
    assert facts["throughput"] == {"steps_s": 1.25, "samples_s": 81.0}
    assert facts["steps"]["seconds"] == pytest.approx(0.8)


def test_load_in_the_log_is_a_share():
    assert read(PLAIN).facts["gpus"][0]["utilisation"]["mean"] == pytest.approx(0.21)


def test_times_of_more_than_a_step_are_left_alone():
    assert None is training_log.read(
        "Epoch time: 351.2 s\nTotal time 12:33:01\nTest: [ 0/9] Time 3.1\n"
    )
    assert None is training_log.read("loss 0.3 acc 0.9\nETA time: 0:12:33\n")


def test_a_data_time_that_is_longer_than_the_step_is_not_part_of_it():
    found = read("step 1 step_time 0.5s data_time 2.0s\n")
    assert "data_wait" not in found.facts["steps"]
    assert [each.id for each in found.missed] == ["diagnose.file.log-data-longer"]


def test_odd_numbers_are_no_times():
    for odd in ("1e999", "-3", "nan", "99999999999999999999999999", "0"):
        assert None is training_log.read(f"step_time {odd}\n")
    assert training_log.read("loss 1\n") is None


def test_the_first_of_few_steps_is_left_out_where_it_starts_the_workers():
    found = read(
        "Train: 0 [   0/1251 (  0%)]  Loss: 6.9  Time: 4.812s,  53.20/s  Data: 3.911 (3.911)\n"
        "Train: 0 [  50/1251 (  4%)]  Loss: 6.9  Time: 0.812s, 315.27/s  Data: 0.601 (0.680)\n"
        "Train: 0 [ 100/1251 (  8%)]  Loss: 6.9  Time: 0.822s, 311.44/s  Data: 0.611 (0.640)\n"
    )
    assert found.facts["steps"]["seconds"] == pytest.approx(0.817)


def test_the_validation_of_yolo_is_no_step():
    train = (
        "  1/100  7.31G  1.23  2.34  1.11  54  640: 100%|████| 250/250 [01:20<00:00, 3.00it/s]\n"
    )
    validation = "  Class  Images  Instances  Box(P  R  mAP50: 100%|████| 20/20 [00:09, 2.00it/s]\n"
    assert read(train + validation).facts["steps"]["seconds"] == pytest.approx(1 / 3)


def test_speed_alone_names_no_cause():
    text = "{'train_samples_per_second': 10.3, 'train_steps_per_second': 0.32}\n10/99 [3.1s/it]\n"
    said = {"trainwright_record": 1, "made_by": "readings", **read(text).facts}
    assert [one.cause for one in judge(Evidence.model_validate(said)).verdicts] == [Cause.UNKNOWN]


def test_a_date_is_no_time_of_a_step():
    assert None is training_log.read("  time      : 2025-05-02_10:10:10\n  host : node0\n")
    assert None is training_log.read('time=2025-05-02T10:10:10.101Z level=WARN msg="too large"\n')


TITAN = """[titan] 2025-03-02 11:02:41 - root - INFO - step:  1  loss: 12.2721  memory: 46.21GiB(58.31%)  tps: 1,812  tflops: 104.92  mfu: 10.61%
[titan] 2025-03-02 11:03:21 - root - INFO - step: 10  loss:  9.8812  memory: 53.02GiB(66.90%)  tps: 5,891  tflops: 341.10  mfu: 34.49%
[titan] 2025-03-02 11:04:01 - root - INFO - step: 20  loss:  8.1230  memory: 53.02GiB(66.90%)  tps: 5,902  tflops: 341.74  mfu: 34.55%
"""
TUNE = """Step 1 | loss:1.6121 lr:2e-05 tokens_per_second_per_gpu:1320.4 peak_memory_active:21.2
Step 2 | loss:1.5834 lr:2e-05 tokens_per_second_per_gpu:1402.1 peak_memory_active:21.2
Step 3 | loss:1.4721 lr:2e-05 tokens_per_second_per_gpu:1399.9 peak_memory_active:21.2
"""
FACTORY = """{"current_steps": 10, "total_steps": 1000, "loss": 1.2345, "lr": 9e-05, "elapsed_time": "0:00:51", "remaining_time": "1:24:09", "throughput": 3212.0, "total_tokens": 163840}
{"current_steps": 20, "total_steps": 1000, "loss": 1.1345, "lr": 9e-05, "elapsed_time": "0:01:42", "remaining_time": "1:23:18", "throughput": 3214.0, "total_tokens": 327680}
"""


@pytest.mark.parametrize(
    ("text", "tokens"), [(TITAN, 5896.5), (TUNE, 1401.0), (FACTORY, 3213.0)]
)  # fmt: skip
def test_tokens_a_second_without_the_first_step(text, tokens):
    assert read(text).facts["throughput"]["tokens_s"] == pytest.approx(tokens)


def test_a_time_is_not_the_number_of_a_step():
    text = """[timer.py:260:stop] epoch=0/micro_step=10/global_step=10, CurrSamplesPerSec=12.61
[timer.py:260:stop] epoch=0/micro_step=20/global_step=20, CurrSamplesPerSec=12.60
time (ms) | fwd: 301.10 | bwd: 701.38 | bwd_inner: 420.28 | bwd_allreduce: 280.99 | step: 1502.22
"""
    assert read(text).facts["steps"]["steps"] == 10


def test_megatrons_exchange_of_gradients_is_communication():
    timers = """    forward-compute ................................: (3000.00, 3100.02)
    backward-compute ...............................: (5900.00, 6001.32)
    all-grads-sync .................................: (1200.00, 1260.43)
"""
    steps = read(MEGATRON.replace("(ms): 123", "(ms): 1123") + timers).facts["steps"]
    assert steps["communication"] == pytest.approx(1.2)


def test_a_log_that_ends_in_a_kill_says_so():
    bar = " 10%|1 | 100/1000 [03:22<30:21,  2.02s/it]\n"
    for end in (
        "Killed\n",
        "zsh: killed     python train.py\n",
        "oom-kill:constraint=CONSTRAINT_NONE\n",
    ):
        assert "diagnose.file.log-error" in [each.id for each in read(bar + end).missed]
    assert "diagnose.file.log-error" not in [each.id for each in read(bar).missed]
