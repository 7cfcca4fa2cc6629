"""The run: processes, order of samples, schedule, checkpoints, around the traced step."""

import argparse
import json
import math
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from dataset import Order
from engine import Engine
from joining import join
from making import make
from networks import Network
from optimizers import set_rate
from plan_file import Plan, Schedule
from saved import load, save
from selfcheck import report
from step import Batch, StepSettings, allow_tf32, counted, to_device
from strict import InputError
from torch.utils.data import DataLoader
from world import World


@dataclass
class Training:
    """What changes from step to step, and is kept in a checkpoint."""

    engine: Engine
    step: int = 0


def run(plan: Plan, options: argparse.Namespace) -> None:
    """Train by the plan.

    Raises:
        InputError: something that must be put right first.
    """
    world = join(plan, cpu=options.cpu)
    try:
        train(plan, options, world)
    except torch.OutOfMemoryError as error:
        raise InputError(
            f"out of GPU memory at {plan.batch.micro} samples a micro-batch: lower batch.micro and "
            "raise batch.accumulation alike, or set settings.checkpointing to full"
        ) from error
    except RuntimeError as error:
        if "No available kernel" not in str(error):
            raise
        raise InputError(
            "settings.attention flash: no flash kernel takes this model's shapes, type, mask or "
            "dropout on this device; set it to sdpa"
        ) from error
    finally:
        world.leave()


def accumulation(plan: Plan, world: World) -> int:
    """Return the micro-batches a step on this process; the effective batch is always kept."""
    batch = plan.batch
    if batch.effective % (world.groups * batch.micro):
        raise InputError(
            f"batch.effective {batch.effective} is not a multiple of {world.groups} processes x "
            f"micro {batch.micro}; start {batch.gpus} processes or change batch in plan.json"
        )
    return batch.effective // (world.groups * batch.micro)


def train(plan: Plan, options: argparse.Namespace, world: World) -> None:
    """Build everything, go on from a checkpoint where asked, and run the steps."""
    rounds = accumulation(plan, world)
    settings = step_settings(plan)
    allow_tf32(settings.precision)
    if plan.settings.attention == "flash":
        flash_only()
    torch.manual_seed(plan.run.seed)
    network = make(plan, options, world)
    engine = Engine(plan, settings, network, world)
    training = Training(engine)
    # From here on processes differ, in dropout for one.
    torch.manual_seed(plan.run.seed + world.group)

    output = Path(plan.run.output)
    goal = steps_to_go(plan, network)
    identity = {
        "effective": plan.batch.effective,
        "seed": plan.run.seed,
        "samples": len(network.dataset),
        "steps": goal,
    }
    if options.resume:
        load(output, training, identity, world)
    if options.selfcheck:
        report(plan, engine, world, rounds)
    _steps(plan, options, world, network, training, identity)
    if training.step == goal:
        weights = engine.weights()
        if world.rank == 0:
            network.save(output, weights)
            say(f"trained: {output}")


def _steps(
    plan: Plan,
    options: argparse.Namespace,
    world: World,
    network: Network,
    training: Training,
    identity: dict[str, int],
) -> None:
    rounds, goal = accumulation(plan, world), identity["steps"]
    engine, output = training.engine, Path(plan.run.output)
    stop = Stop()
    last = min(goal, options.stop_at or goal)
    batches = iter(loader(plan, network, training.step, world))
    while training.step < last:
        started = time.perf_counter()
        rate = learning_rate(plan.schedule, training.step, goal)
        set_rate(engine.optimizer, rate)
        micro = [Batch(**next(batches)) for _ in range(rounds)]
        count, stopping = world.total(counted(micro, network.loss), stop.asked)
        losses = []
        for number, batch in enumerate(micro):
            last_one = number == rounds - 1
            on_device = to_device(batch, world.device, engine.settings)
            losses.append(engine.micro_step(on_device, count, network.loss, last=last_one))
        engine.update()
        training.step += 1
        # Each process has divided by its share of the count.
        (loss,) = world.total(float(torch.stack(losses).sum()) / world.size)
        if not math.isfinite(loss) and engine.scaler is None:
            raise InputError(f"step {training.step}: the loss is {loss}; lower the learning rate")
        if world.rank == 0:
            seconds = time.perf_counter() - started
            record(output, training.step, goal, loss, rate, plan.batch.effective / seconds)
        if training.step % plan.run.save_every == 0 or training.step == last or stopping:
            save(output, training, identity, world, plan.run.keep)
        if stopping:
            say(f"stopped at step {training.step}; --resume goes on from here")
            break


def step_settings(plan: Plan) -> StepSettings:
    """Return what of the plan shapes one step."""
    return StepSettings(
        precision=plan.settings.precision,
        checkpointing=plan.settings.checkpointing,
        offload=plan.settings.activation_offload,
        optimizer=plan.settings.optimizer,
        implementation=plan.settings.optimizer_implementation or "",
        momentum=plan.settings.momentum,
        learning_rate=plan.schedule.learning_rate,
        clip=plan.schedule.clip_norm,
        in_backward=plan.settings.optimizer_in_backward,
        channels_last=plan.settings.channels_last,
    )


def loader(plan: Plan, network: Network, step: int, world: World) -> DataLoader[Any]:
    """Return the micro-batches of this process from an optimizer step on."""
    order = Order(
        len(network.dataset), plan.batch.effective, world.group, world.groups, plan.run.seed, step
    )
    data, workers = plan.data, {}
    if data.num_workers:
        workers = {
            "prefetch_factor": data.prefetch_factor,
            "persistent_workers": data.persistent_workers,
        }
    return DataLoader(
        network.dataset,
        plan.batch.micro,
        sampler=order,
        num_workers=data.num_workers,
        collate_fn=network.collate,
        pin_memory=data.pin_memory and world.device.type == "cuda",
        # Workers draw their seed from here and leave the run's own generator alone.
        generator=torch.Generator().manual_seed(plan.run.seed),
        **workers,
    )


def flash_only() -> None:
    """Take the other attention kernels away, so that none of them steps in unnoticed."""
    torch.backends.cuda.enable_math_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_cudnn_sdp(False)


def steps_to_go(plan: Plan, network: Network) -> int:
    """Return the optimizer steps of the whole run."""
    if plan.schedule.steps is not None:
        return plan.schedule.steps
    return max(1, math.ceil(len(network.dataset) * plan.schedule.epochs / plan.batch.effective))


def learning_rate(schedule: Schedule, step: int, steps: int) -> float:
    """Return the rate of a step: linear warm-up, then half a cosine to the final ratio."""
    warmup = schedule.warmup_steps
    warmup = math.ceil(0.03 * steps) if warmup is None else warmup
    if step < warmup:
        return schedule.learning_rate * (step + 1) / warmup
    progress = (step - warmup) / max(1, steps - warmup)
    floor = schedule.final_ratio
    cosine = floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))
    return schedule.learning_rate * cosine


class Stop:
    """Whether someone asked the run to end; then it saves after the step and leaves."""

    def __init__(self) -> None:
        self.asked = False
        for name in (signal.SIGINT, signal.SIGTERM):
            signal.signal(name, self._ask)

    def _ask(self, *_: Any) -> None:
        self.asked = True


def record(
    output: Path, step: int, goal: int, loss: float, rate: float, samples_per_second: float
) -> None:
    """Append the step to log.jsonl, and show some of them."""
    output.mkdir(parents=True, exist_ok=True)
    line = {"step": step, "loss": loss, "lr": rate, "samples_per_second": samples_per_second}
    with (output / "log.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    if step == 1 or step % 10 == 0 or step == goal:
        say(
            f"step {step}/{goal}  loss {loss:.4f}  lr {rate:.3g}  "
            f"{samples_per_second:.3g} samples/s"
        )


def say(text: str) -> None:
    """Write a line at once, so that it is seen through a pipe too."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
