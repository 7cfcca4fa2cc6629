"""Train a tiny Llama with torch's ``fully_shard`` on CPUs, and print each case's live bytes.

``torchrun --nproc_per_node 2 sharded_run.py CASES.json``; rank 0 prints one JSON line a case: the
most bytes that live at once in the second step. Two processes share each copy: four have two.
With ``tensor`` two processes split each layer: of four, two pairs share the parts. Other strategies
are DistributedDataParallel and DeepSpeed.
"""

import gc
import json
import sys
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from peft import LoraConfig, get_peft_model
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_module
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import LlamaConfig, LlamaForCausalLM


class LiveBytes(TorchDispatchMode):
    """Counts storages from their first sight to their end, with the sizes that they have."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: dict[int, int] = {}
        self.now = self.peak = 0

    def see(self, storage: torch.UntypedStorage) -> None:
        """Count a storage, or its new size."""
        key, nbytes = storage._cdata, storage.nbytes()
        if key not in self.sizes:
            weakref.finalize(storage, self.forget, key)
        self.now += nbytes - self.sizes.get(key, 0)
        self.sizes[key] = nbytes
        self.peak = max(self.peak, self.now)

    def forget(self, key: int) -> None:
        self.now -= self.sizes.pop(key, 0)

    def look(self, tree: Any) -> None:
        """Count what a call returned; of a sharded tensor its own part."""
        for leaf in pytree.tree_leaves(tree):
            if isinstance(leaf, torch.Tensor):
                local = getattr(leaf, "_local_tensor", leaf)
                if local.device.type != "meta":  # DeepSpeed keeps shapes so
                    self.see(getattr(local, "elem", local).untyped_storage())

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self.look(out)
        return out


class Resized(AbstractContextManager[None]):
    """Tells a counter of storages that change their size, which no dispatch shows."""

    def __init__(self, live: LiveBytes) -> None:
        self.live, self.original = live, torch.UntypedStorage.resize_

    def __enter__(self) -> None:
        original, live = self.original, self.live

        def resize(storage: torch.UntypedStorage, nbytes: int) -> Any:
            done = original(storage, nbytes)
            if storage._cdata in live.sizes:
                live.see(storage)
            return done

        torch.UntypedStorage.resize_ = resize  # type: ignore[method-assign]

    def __exit__(self, *_: object) -> None:
        torch.UntypedStorage.resize_ = self.original  # type: ignore[method-assign]


def measured(config: Path, case: dict[str, Any]) -> int:
    """Return the peak of the second step on this rank."""
    torch.manual_seed(0)
    sizes = case.get("config", {})
    shape = LlamaConfig.from_pretrained(config, attn_implementation="eager", **sizes)
    model: nn.Module = LlamaForCausalLM(shape)
    model.config.use_cache = False
    if case["checkpointing"] == "full":
        model.gradient_checkpointing_enable({"use_reentrant": False})
    model.train()
    if case["strategy"].startswith("zero"):
        return of_deepspeed(model, case)
    if case["strategy"] == "ddp":
        return steps(DistributedDataParallel(model), case)
    blocks = model.model.layers
    if case["adapters"]:
        if case["precision"] == "bf16-mixed":
            model = model.bfloat16()  # PEFT makes the adapters fp32
        model = get_peft_model(model, LoraConfig(r=8, lora_alpha=16, target_modules="all-linear"))
    policy = MixedPrecisionPolicy()
    if case["precision"] == "bf16-mixed":
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    kept = {"reshard_after_forward": False} if not case["reshard"] else {}
    pairs = dist.get_world_size() // 2
    if case["tensor"]:
        mesh = init_device_mesh("cpu", (pairs, 2), mesh_dim_names=("shard", "tensor"))
        split(model, mesh["tensor"])
        mesh = mesh["shard"]
    else:
        shape = (pairs, 2) if pairs > 1 else (2,)
        mesh = init_device_mesh("cpu", shape, mesh_dim_names=("replicate", "shard")[-len(shape) :])
    for block in blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy, **kept)
    fully_shard(model, mesh=mesh, mp_policy=policy, **kept)
    placed = (*[Replicate()] * (mesh.ndim - 1), Shard(0))
    assert case["tensor"] or all(one.placements == placed for one in model.parameters())
    assert all(isinstance(parameter, DTensor) for parameter in model.parameters())
    return steps(model, case)


def steps(model: nn.Module, case: dict[str, Any]) -> int:
    """Return the peak of the second of two steps."""
    trained = [one for one in model.parameters() if one.requires_grad]
    optimizer = torch.optim.AdamW(trained, foreach=True)
    live = LiveBytes()

    def update() -> None:
        for number in range(case["accumulation"]):
            if case["strategy"] == "fsdp2":
                model.set_requires_all_reduce(number + 1 == case["accumulation"])
            step(model, case, live, torch.Tensor.backward)
        nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        optimizer.zero_grad()

    with live, Resized(live):
        return second_peak(model, live, update)


def second_peak(model: nn.Module, live: LiveBytes, update: Callable[[], None]) -> int:
    """Return the peak of the second of two updates; what the model holds counts from the first."""
    for tensor in (*model.parameters(), *model.buffers()):
        live.look(tensor)
    for _ in range(2):
        gc.collect()
        live.peak = live.now
        update()
    return live.peak


def of_deepspeed(model: nn.Module, case: dict[str, Any]) -> int:
    """Return the same of DeepSpeed, by the settings that it has of itself."""
    import deepspeed

    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    settings = {
        "train_micro_batch_size_per_gpu": case["batch"],
        "gradient_accumulation_steps": case["accumulation"],
        "gradient_clipping": 1.0,
        "bf16": {"enabled": case["precision"] == "bf16-mixed"},
        "zero_optimization": {"stage": int(case["strategy"][-1])},
        "zero_allow_untested_optimizer": True,
    }
    live = LiveBytes()
    with live, Resized(live):
        engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=settings)

        def update() -> None:
            for _ in range(case["accumulation"]):
                step(engine, case, live, engine.backward)
                engine.step()

        return second_peak(model, live, update)


def split(model: nn.Module, mesh: DeviceMesh) -> None:
    """Split the layers by torch's own styles; the norms are on both, as DTensors too."""
    columns, rows = ColwiseParallel(), RowwiseParallel()
    parallelize_module(
        model,
        mesh,
        {
            "model.embed_tokens": ColwiseParallel(output_layouts=Replicate()),
            **{f"model.layers.*.self_attn.{name}_proj": columns for name in "qkv"},
            **{f"model.layers.*.mlp.{name}_proj": columns for name in ("gate", "up")},
            "model.layers.*.self_attn.o_proj": rows,
            "model.layers.*.mlp.down_proj": rows,
            "lm_head": ColwiseParallel(output_layouts=Replicate()),
        },
    )

    def entering(_: nn.Module, given: Any, mesh: DeviceMesh) -> Any:
        return DTensor.from_local(given[0], mesh, [Replicate()], run_check=False)

    for norm in [part for part in model.modules() if type(part).__name__.endswith("RMSNorm")]:
        distribute_module(norm, mesh, None, entering, lambda _, result, mesh: result.to_local())


def step(
    model: nn.Module, case: dict[str, Any], live: LiveBytes, backward: Callable[[torch.Tensor], Any]
) -> None:
    """Run one micro-batch: all scores in fp32, of labels that are one token ahead."""
    tokens = torch.randint(0, 1000, (case["batch"], case["sequence"]))
    live.look(tokens)
    scores = model(input_ids=tokens).logits.float()
    labels = nn.functional.pad(tokens, (0, 1), value=-100)[..., 1:].reshape(-1)
    loss = nn.functional.cross_entropy(scores.view(-1, scores.shape[-1]), labels)
    del scores
    backward(loss)


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    for one in asked["cases"]:
        found = measured(Path(asked["config"]), one)
        if dist.get_rank() == 0:
            print(json.dumps(found), flush=True)
        gc.collect()
        dist.barrier()
    dist.destroy_process_group()
