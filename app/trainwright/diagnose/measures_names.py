"""What the rows of profilers' tables are, told from their names.

Kernels' names are those of cuBLAS, cuDNN, CUTLASS, NCCL, FlashAttention and torch; functions' those
of Python, torch and the CUDA runtime.
"""

import re
from collections.abc import Callable, Iterable
from typing import Literal

from trainwright.diagnose.evidence import Evidence, HostFunction, Operator

Family = Literal[
    "communication",
    "copy",
    "attention",
    "tensor-core",
    "plain-matrix",
    "double-matrix",
    "layout",
    "optimizer",
    "elementwise",
    "matrix",
    "waiting",
    "launch",
    "allocation",
]
_KERNELS: tuple[tuple[Family, str], ...] = (
    ("communication", r"nccl|rccl|allreduce|all_reduce|all_gather|allgather|reduce_?scatter"
                      r"|all_?to_?all|gloo:|c10d::|horovod|cross_device_reduce"),
    ("launch", r"(cuda|cu|hip)(graph)?launch(kernel)?|launch overhead"),
    ("waiting", r"cuda(stream|device|event)synchronize|local_scalar_dense|aten::item"),
    ("allocation", r"^cuda(malloc|free)|cudahostalloc|empty_?cache"),
    ("copy", r"memcpy.*(htod|dtoh|host|pageable|pinned)|(htod|dtoh).*memcpy|cudamemcpy"),
    ("attention", r"flash|fmha|attention|sdpa"),
    ("layout", r"nchwtonhwc|nhwctonchw|nchw2nhwc|nhwc2nchw|transpose|permute|convert|_to_copy"),
    ("double-matrix", r"dgemm|_d884gemm|gemm_f64|_ddd"),
    ("tensor-core", r"tf32|tensorop|hmma|gmma"),
    ("plain-matrix", r"sgemm|scudnn|ffma|simt.*gemm|gemm.*simt|gemm_f32f32|gemmsn|gemmk1"
                     r"|implicit_convolve_sgemm|winograd"),
    ("tensor-core", r"s\d*(16816|1688|884|8816|16832)|hmma|wgmma|gmma|tensorop|h884|h1688"
                    r"|(bf16|fp16|f16|half).*gemm|gemm.*(bf16|fp16|f16)|cutlass.*tensor"),
    ("matrix", r"gemm|gemv|matmul|::mm\b|::bmm|addmm|linear|conv|cudnn|mkldnn|lstm|rnn|gru"),
    ("optimizer", r"adam|sgd|lamb|multi_tensor|optimizer|foreach"),
    ("elementwise", r"elementwise|vectorized|unrolled|pointwise|triton_poi|relu|gelu|silu|dropout"
                    r"|aten::(add|mul|div|sub|copy|fill|sqrt|addcmul|addcdiv)_?\b"),
)  # fmt: skip
"""The first that matches holds."""

HostFamily = Literal[
    "loader", "waiting", "launch", "allocation", "garbage", "copy", "communication",
    "optimizer", "log", "checkpoint", "evaluation", "compile", "offload",
]  # fmt: skip
_FUNCTIONS: tuple[tuple[HostFamily, str], ...] = (
    ("loader", r"dataloader|_next_data|_try_get_data|__getitem__|collate|queue.*get|_poll\b|"
               r"decode|augment|transform\b|imread|get_batch|prefetch|tokeniz|pil\b|cv2|librosa"),
    ("garbage", r"gc\.collect|garbage"),
    ("allocation", r"^cuda(malloc|free)|cudahostalloc|empty_?cache"),
    ("waiting", r"synchroni[sz]e|local_scalar_dense|\bitem\b|\btolist\b|\.cpu\b|nonzero"),
    ("launch", r"launch_?kernel|graphlaunch|aten::|_call_impl|dispatch"),
    ("communication", r"nccl|all_?reduce|all_?gather|reduce_?scatter|barrier|broadcast|gloo"),
    ("copy", r"memcpy|\.to\b|_to_copy|pin_memory|copy_"),
    ("checkpoint", r"torch\.save|save_checkpoint|state_dict|pickle|serializ|save_model"),
    ("log", r"tensorboard|wandb|mlflow|logg|add_scalar|histogram|print\b|tqdm|write_line|json"),
    ("evaluation", r"evaluat|validat|metric"),
    ("optimizer", r"adam|optimizer|\bstep\b"),
    ("compile", r"dynamo|inductor|guard|recompil"),
    ("offload", r"offload|onload|wake_?up|\bsleep\b|swap_?(in|out)|to_host|to_device"),
)  # fmt: skip


def family(name: str) -> Family | None:
    """Return what a kernel or operator is; None: nothing that is known."""
    return next((each for each, words in _KERNELS if re.search(words, name.lower())), None)


def host_family(name: str) -> HostFamily | None:
    """Return what a function of the host program is for; None: nothing that is known."""
    return next((each for each, words in _FUNCTIONS if re.search(words, name.lower())), None)


def kernels_of(*families: Family) -> Callable[[Evidence], float | None]:
    """Return the measure of the share of a profile's rows that are of these families."""

    def share(evidence: Evidence) -> float | None:
        rows = evidence.profile.top if evidence.profile is not None else ()
        return _sum(row.share for row in rows if family(row.name) in families) if rows else None

    return share


def functions_of(*families: HostFamily) -> Callable[[Evidence], float | None]:
    """Return the measure of the largest row of these families in the host program's profile.

    Rows hold what they call, so that their shares do not add up.
    """

    def share(evidence: Evidence) -> float | None:
        rows = evidence.profile.host_top if evidence.profile is not None else ()
        found = [row.share for row in rows if host_family(row.name) in families]
        return max(found, default=0.0) if rows else None

    return share


def odd_kernel(evidence: Evidence) -> float | None:
    """Return the share of the largest kernel that is no library's, nor a copy or a collective.

    Of kernels on a GPU alone: torch's operators on the processor are names of another kind.
    """
    rows = evidence.profile.top if evidence.profile is not None else ()
    own = [row for row in rows if _own(row)]
    return max((row.share for row in own), default=None)


def _own(row: Operator | HostFunction) -> bool:
    return family(row.name) in (None, "elementwise") and not row.name.startswith("aten::")


def _sum(shares: Iterable[float]) -> float:
    return min(1.0, sum(shares))
