"""Run by ``test_staged.py``: what each stage of a pipeline of torch holds, on real processes.

``torchrun --nproc_per_node 2 staged_run.py CASES.json``; rank 0 prints one JSON line a case: the
most bytes that live at once in the second step, of each rank, which is a stage.
"""

import contextlib
import gc
import json
import sys
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from sharded_run import LiveBytes
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from transformers import LlamaConfig, LlamaForCausalLM


class Part(nn.Module):
    """Some layers; the first part has the table of tokens, the last one norm, head and loss."""

    def __init__(self, model: Any, rank: int, cuts: list[int], mixed: bool) -> None:
        super().__init__()
        count = len(cuts) - 1
        model.model.layers = model.model.layers[cuts[rank] : cuts[rank + 1]]
        self.first, self.last, self.mixed = rank == 0, rank == count - 1, mixed
        if not self.first:
            model.model.embed_tokens = None
        if not self.last:
            model.model.norm, model.lm_head = nn.Identity(), None
        self.inner = model

    def forward(self, given: torch.Tensor, labels: torch.Tensor | None = None) -> torch.Tensor:
        name = "input_ids" if self.first else "inputs_embeds"
        autocast = torch.autocast("cpu", torch.bfloat16) if self.mixed else contextlib.nullcontext()
        with autocast:
            hidden = self.inner.model(**{name: given}, use_cache=False).last_hidden_state
            if labels is None:
                return hidden
            scores = self.inner.lm_head(hidden).float()
            del hidden
            ahead = nn.functional.pad(labels, (0, 1), value=-100)[..., 1:].reshape(-1)
            return nn.functional.cross_entropy(scores.view(-1, scores.shape[-1]), ahead)


def measured(config: Path, case: dict[str, Any]) -> int:
    """Return the peak of the second step on this rank."""
    torch.manual_seed(0)
    rank, count = dist.get_rank(), dist.get_world_size()
    model = LlamaForCausalLM(LlamaConfig.from_pretrained(config, attn_implementation="eager"))
    if case["checkpointing"] == "full":
        model.gradient_checkpointing_enable({"use_reentrant": False})
    part = Part(model.train(), rank, case["cuts"], case["precision"] == "bf16-mixed")
    del model
    device, several = torch.device("cpu"), case["accumulation"]
    stage = PipelineStage(part, rank, count, device)
    schedule = Schedule1F1B(stage, several, loss_fn=lambda loss, _: loss, scale_grads=False)
    optimizer = torch.optim.AdamW(part.parameters(), foreach=True)
    live = LiveBytes()
    with live:
        for tensor in (*part.parameters(), *part.buffers()):
            live.look(tensor)
        for _ in range(2):
            gc.collect()
            live.peak = live.now
            tokens = torch.randint(0, 1000, (case["batch"] * several, case["sequence"]))
            given = (tokens,) if part.first else ()
            kept = {"labels": tokens, "target": tokens[:, 0]} if part.last else {}
            if not (part.first or part.last):
                del tokens
            schedule.step(*given, return_outputs=False, **kept)
            nn.utils.clip_grad_norm_(part.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    return live.peak


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    for one in asked["cases"]:
        peaks: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(peaks, measured(Path(asked["config"]), one))
        if dist.get_rank() == 0:
            print(json.dumps(peaks), flush=True)
        gc.collect()
        dist.barrier()
    dist.destroy_process_group()
