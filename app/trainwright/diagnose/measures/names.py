"""What the rows of profilers' tables are, told from their names.

Kernels' names are those of cuBLAS, cuDNN, CUTLASS, NCCL, FlashAttention and torch; functions' those
of Python, torch and the CUDA runtime.
"""

import re
from collections.abc import Callable, Iterable
from typing import Literal

from trainwright.diagnose.evidence import Evidence, HostFunction, Operator
from trainwright.diagnose.measures.figures import data_wait, lowest_capability, number, on_gpu

Family = Literal[
    "communication", "copy", "attention", "tensor-core", "plain-matrix", "double-matrix", "layout",
    "optimizer", "elementwise", "matrix", "waiting", "launch", "allocation", "scores", "direct",
    "fallback",
]  # fmt: skip


def _then(first: str, behind: str) -> str:
    """Return the pattern of words with others anywhere behind the first of them.

    Only the start of a text is tried, so that the time grows with the text and not its square.
    """
    return rf"\A(?>.*?{first}).*{behind}"


_KERNELS: tuple[tuple[Family, str], ...] = (
    ("communication", r"nccl|rccl|allreduce|all_reduce|all_gather|allgather|reduce_?scatter"
                      r"|all_?to_?all|gloo:|c10d::|horovod|cross_device_reduce|sendrecv|all2all"
                      r"|hvd\.|all-(reduce|gather|to-all)|reduce-scatter|collective[-_]?permute"
                      r"|mpi_|deep_ep|internode|intranode|nvshmem|p2p_|kvstore"),
    ("launch", r"(cuda|cu|hip)(graph)?(ext)?(module)?launch(kernel)?|launch overhead"),
    ("waiting", r"(cuda|hip)(stream|device|event)synchronize|local_scalar_dense|aten::item"
                r"|nonzero|masked_select|\b_?unique"),
    ("allocation", r"^(cuda|hip)(malloc|free)|(cuda|hip)hostalloc|empty_?cache|cumem(map|create)"),
    ("copy", _then("memcpy", "(htod|dtoh|host|pageable|pinned)")
             + "|" + _then("(htod|dtoh)", "memcpy") + r"|(cuda|hip)memcpy"
             r"|copy(host|device)to(host|device)"),
    ("attention", r"flash|fmha|attention|attn|sdpa"),
    ("layout", r"nchw_?(to|2)_?nhwc|nhwc_?(to|2)_?nchw|transpose|permute|convert|_to_copy"
               r"|catarray|aten::(cat|contiguous|clone)\b"),
    ("double-matrix", r"dgemm|_d884gemm|gemm_f64|_ddd"),
    ("fallback", r"slow_conv|thnn_conv|naive|reference_|fallback"),
    ("direct", r"grouped_direct|depthwise|im2col|col2im|naive_conv"),
    ("tensor-core", r"tf32|tensorop|hmma|gmma"),
    ("plain-matrix", _then("simt", "gemm") + "|" + _then("gemm", "simt")
                     + r"|sgemm|scudnn|ffma|gemm_f32f32|gemmsn|gemmk1"
                     r"|implicit_convolve_sgemm|winograd"),
    ("tensor-core", r"s\d*(16816|1688|884|8816|16832)|hmma|wgmma|gmma|tensorop|h884|h1688"
                    r"|nvjet|sm\d+_xmma|" + _then("(bf16|fp16|f16|half)", "gemm")
                    + "|" + _then("gemm", "(bf16|fp16|f16|fp8)")
                    + "|" + _then("cutlass", "tensor")),
    ("elementwise", r"(layer|rms|batch|group)_?norm|\bbn_(fw|bw)|(loop|input|output)_fusion"
                    r"|triton_(red|per)_|reduce_kernel|bias_?add"),
    ("matrix", r"gemm|gemv|dot_general|[fdw](prop|grad)|einsum|cublas|cijk_|grouped_mm|matmul"
               r"|::mm\b|::bmm|addmm|(?<!bi)(?<!tri)linear|conv|cudnn|mkldnn|lstm|rnn|gru"),
    ("optimizer", r"adam|sgd|lamb|multi_tensor|optimizer|foreach"),
    ("scores", r"softmax|masked_fill|masked_softmax"),
    ("elementwise", r"elementwise|vectorized|unrolled|pointwise|triton_poi|relu|gelu|silu|dropout"
                    r"|aten::(add|mul|div|sub|copy|fill|sqrt|addcmul|addcdiv)_?\b"),
)  # fmt: skip
"""The first that matches holds."""

HostFamily = Literal[
    "loader", "fetch", "preprocess", "waiting", "launch", "allocation", "garbage", "copy",
    "communication", "optimizer", "log", "checkpoint", "evaluation", "compile", "offload",
    "profiler", "anomaly", "recomputation", "workers", "few-bits",
]  # fmt: skip
_FUNCTIONS: tuple[tuple[HostFamily, str], ...] = (
    ("waiting", r"\bmx\.eval\b|transferfromdevice"),
    ("fetch", r"(pickle|gzip|zipfile|nib(abel)?|np|numpy)\.(load|read)|simpleitk|\bsitk"),
    ("offload", r"offload|onload|memmap|\.base\.flush|mmap\.flush|[.:]unpack(_hook)?\b"),
    ("recomputation", r"recompute_fn|checkpointfunction\.backward|_checkpoint_hook"
                      r"|dynamo_disabled|\brecompute|\bremat|activation.?recomput"),
    ("few-bits", r"fake_?quant|(?<!un)quanti[sz]e|dequant|(?<!\w)(?>\w*?to_)\w*bits?\b"
                 r"|to_?(fp|int|float)[48]\b|(eight|four|two)_?bits?\b"),
    ("garbage", r"\bgc\b|gc_?collect|garbage|gcmodule|collect_generations|deduce_unreachable"),
    ("anomaly", r"anomaly|format_stack|extract_stack|check_(nan|finite|numerics)"
                r"|\bis_?(nan|finite)"),
    ("profiler", r"profiler|kineto|export_chrome_trace|trace_handler|on_trace_ready|cprofile"
                 r"|tracemalloc|nvtx"),
    ("launch", r"cachedautotuner|jitfunction|triton\S{0,80}[.:]run|(pre|post)_(forward|backward)"
               r"|forward_(pre_)?hook|nn_module_hook"),
    ("communication", r"nccl|rccl|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|barrier"
                      r"|broadcast|gloo|c10d|horovod|parallel_apply|data_parallel|coalesced"
                      r"|(send|recv)_(forward|backward)|isend|irecv|\breducer\b|_sync_buffers"
                      r"|\bmpi_|kvstore|scatter_gather|\bgrpc"
                      r"|grad(ient)?s?[ _](sync|reduc|exchang)|_sync_params"
                      r"|(sync\w{0,12}|average|reduce|exchange)[ _]\w{0,24}grad"
                      r"|param(eter)?[ _]server|\bray\.get"
                      r"|^(moe|experts?|tokens?)?[ _.]?(dispatch|combine)$"),
    ("fetch", r"h5py|lmdb|zarr|nibabel|dicom|netcdf|xarray|\bdask\b|gfile|tfrecord|sequencefile"),
    ("workers", r"popen_(fork|spawn)|_shutdown_workers|multiprocessingdataloaderiter\.__init__"
                r"|dataloader\._get_iterator"),
    ("loader", r"dataloader|_next_data|_try_get_data|worker_loop|_poll\b|prefetch"
               r"|__getitem__|get_batch|next_batch|dataset|recv_bytes|_utils/fetch|"
               + _then("queue", "get") + "|" + _then(r"next\(", "(loader|iter)")
               + "|" + _then("iterator", "get_?next") + r"|_wait_for_data|(batch|random)sampler"
               r"|iter_batches|data_time|data_generator|'acquire' of '_thread|select\.poll"
               r"|_start_processes|fork_exec|_shutdown_workers|\bloading\b|iter(rows|tuples)"
               r"|data[ _]?load|load[ _](data|batch)"
               r"|(fetch|sample|get|make)[ _](\w{1,40}[ _])?batch|data_iter"
               r"|wait(ing)?[ _]for[ _](data|batch)|(replay|buffer)\w{0,40}\.sample"
               r"|feed_dict|optionalgetvalue|petastorm|multiprocessing/connection"),
    ("preprocess", r"decode|augment|transform(s|\.py|\b)|imread|tokeniz|\bpil\b|pillow|cv2"
                   r"|librosa|collat(e|ion)|resize|crop|\bstft|spectrogram|resample|jpeg"
                   r"|decompress|zlib|gzip|inflate|pad_sequence|albument|normalize_image|mixup"
                   r"|ffmpeg|\bav\b|kornia|torchio|monai|ndimage|zoom\b|rotat|elastic"
                   r"|warp_?affine|map_coordinates|blur|imgaug|moviepy|to_?tensor\b|fromarray"
                   r"|mosaic|neighbou?r_?sampl|rdkit|molfrom|pre-?process|feature[ _]?extract"
                   r"|extract_feat|(radius|knn)_graph|random_affine|letterbox"
                   r"|np\.(pad|stack|concatenate|random)|png_?read|voxeli|\bbpe\b|encode_batch"
                   r"|pandas|\biloc\b|batchgenerators"
                   r"|(?<!\w)(?>\w*?(load|get|read|make|prepare)_)\w*"
                   r"(image|img|audio|wav|mel|video|frame|sample|text)"),
    ("fetch", r"h5py|lmdb|zarr|sqlite|parquet|read_csv|np\.load|open_?file|\bfopen|"
              + _then("numpy", "load") + r"|\bread(_?(bytes|file|exact|into|all|image))?\b"
              r"|\bs3\b|boto|fsspec|urlopen|requests|socket|fromfile|\brecv\b|tarfile|webdataset|soundfile|torchaudio"
              r"|\bio\.open\b|s3fs|gcsfs|urllib|listdir|\bglob\b|pread|\bmmap|decord"),
    ("allocation", r"^(cuda|hip)(malloc|free)|(cuda|hip)hostalloc|empty_?cache|cumem(map|create)"
                   r"|cachingallocator|\bmalloc\b|malloc_trim|page_fault|clear_(huge_)?page"
                   r"|handle_mm_fault|\b(munmap|madvise)\b|bfc_?alloc|pageblock_pfn"
                   r"|compact_(zone|memory)|khugepaged|isolate_(migrate|free)pages"),
    ("checkpoint", r"torch\.save|save_(checkpoint|model|pretrained|state)|state_dict|pickle"
                   r"|serializ|modelcheckpoint|save_(file|weights)|(model|saver|trainer)\.save"
                   r"|orbax|\bckpt|fsync"),
    ("waiting", r"synchroni[sz]e|local_scalar_dense|\bitem\b|\btolist\b|\.cpu\b|nonzero"
                r"|masked_select|\bto_?numpy\b|\.numpy\b|__bool__|__float__|'(cpu|numpy)' of"
                r"|block_until_ready|device_get|asnumpy|wait_to_read|found_inf|unscale_"),
    ("launch", r"launch_?kernel|graphlaunch|pyeval_|tfe_py|eager_execute|python overhead|aten::"
               r"|_call_impl|dispatch|autograd|_engine_run"),
    ("copy", r"memcpy|\.to\b|_to_copy|pin_memory|copy_|\.cuda\b|\bh(to|2)d\b"
             r"|host[ _-]to[ _-]device|device_put"),
    ("log", r"tensorboard|wandb|mlflow|comet|neptune|logg|log_dict|add_(scalar|image|figure)"
            r"|histogram|print\b|tqdm|\bwrite|json|matplotlib|savefig|\bplt\b|imsave|imwrite"
            r"|flush|\blog\b|record_?video|video_?recorder|visdom|imshow|make_grid|save_image|imageio|video_?writer|event_file"
            r"|log_metric|\bsummar(y|ies)|_summar(y|ies)|progress[ _]?bar|visuali[sz]|\bplot"),
    ("evaluation", r"evaluat(?!e_(action|polic|state|position|lea))|validat|metric"
                   r"|(val|test)_(step|loop|epoch)|\beval(?!_frame|uat)|sklearn|accuracy|run_eval"
                   r"|val[ _]loop|test_epoch|\bbleu|\brouge|generate\b|cocoeval|pycocotools"
                   r"|roc_auc"),
    ("compile", r"dynamo(?!/eval_frame)|inductor|guard|recompil|xla_?compil|backend_compile"
                r"|cudnn_?(find|benchmark)|autotun|compile_fx|(jit|xla)[ _]?compil|retrac"
                r"|\b(cc1plus|nvcc|ptxas)\b"),
    ("offload", r"wake_?up|(?<!time\.)\bsleep\b|swap_?(in|out)|to_host|to_device|cpu_?adam|paged"
                r"|async_io|\baio_?|aligndeviceshook|fetch_sub_module|nvme_|async_swap"),
    ("optimizer", r"adam|optimizer|apply_gradients|(update|apply)_ema|ema_update|soft_update"
                  r"|polyak|(?<!env\.)\bstep\b|\bmuon|newton_?schulz|shampoo|zero_grad|clip_grad"),
)  # fmt: skip
"""The first that matches holds."""
_OF_KERNELS = tuple((each, re.compile(words)) for each, words in _KERNELS)
_OF_FUNCTIONS = tuple((each, re.compile(words)) for each, words in _FUNCTIONS)


def family(name: str) -> Family | None:
    """Return what a kernel or operator is; None: nothing that is known."""
    return next((each for each, words in _OF_KERNELS if words.search(name.lower())), None)


def host_family(name: str) -> HostFamily | None:
    """Return what a function of the host program is for; None: nothing that is known."""
    return next((each for each, words in _OF_FUNCTIONS if words.search(name.lower())), None)


def kernels_of(*families: Family) -> Callable[[Evidence], float | None]:
    """Return the measure of the share of a profile's rows that are of these families."""

    def share(evidence: Evidence) -> float | None:
        rows = evidence.operators
        return _sum(row.share for row in rows if family(row.name) in families) if rows else None

    return share


def functions_of(*families: HostFamily) -> Callable[[Evidence], float | None]:
    """Return the measure of the largest row of these families in the host program's profile.

    Rows hold what they call, so that their shares do not add up.
    """

    def share(evidence: Evidence) -> float | None:
        rows = evidence.functions
        found = [row.share for row in rows if host_family(row.name) in families]
        return max(found, default=0.0) if rows else None

    return share


def inserts_rows(evidence: Evidence) -> bool:
    """Whether much of the time goes into a database's writes, which read its own pages again."""
    rows = evidence.functions
    named = [row.share for row in rows if re.search(r"executemany|\.commit\(", row.name)]
    return _sum(named) >= 0.1


def reads_within(evidence: Evidence) -> bool:
    """Whether a step on a GPU itself reads or prepares what its batch only points to."""
    wait, row = data_wait(evidence), functions_of("fetch", "preprocess")(evidence)
    return on_gpu(evidence) and wait is not None and wait < 0.05 and (row or 0) >= 0.3


_LOOKUPS = re.compile(r"embedding|lookup|gather|scatter|index_?select|rowwise")


def fills_memory(evidence: Evidence) -> bool:
    """Whether a device's memory is as busy as it can be, and no kernel reads what it need not.

    Of kernels that a compiler fused, or that read and update tables.
    """
    rows = evidence.operators
    looked_up = _sum(row.share for row in rows if _LOOKUPS.search(row.name.lower()))
    needed = looked_up >= 0.4 or is_compiled(evidence)
    return needed and (number("gpus.dram_active")(evidence) or 0) >= 0.75


def is_compiled(evidence: Evidence) -> bool:
    """Whether a compiler has fused the run's element-wise kernels."""
    return evidence.setup is not None and evidence.setup.compile is True


def odd_kernel(evidence: Evidence) -> float | None:
    """Return the share of the largest kernel that is not a library's, nor a copy or a collective.

    The passes of a convolution that is computed directly are one. Torch's operators on the
    processor are names of another kind; those of a GPU's time count where none is a matrix product,
    attention or element-wise. Lookups that fill the memory's bandwidth can do no better.
    """
    top = () if fills_memory(evidence) else evidence.operators
    rows = [row for row in top if not _MOVES.search(row.name.lower())]
    if is_compiled(evidence):
        rows = [row for row in rows if family(row.name) != "elementwise"]
    own = [row for row in rows if _own(row) or (on_gpu(evidence) and family(row.name) is None)]
    passes = _sum(row.share for row in own if family(row.name) == "direct")
    return max((passes, *(row.share for row in own))) if own else None


def odd_takes_most(evidence: Evidence) -> bool:
    """Whether half of the time and more is in one operation that no library has."""
    return (odd_kernel(evidence) or 0.0) >= 0.5


def filled(evidence: Evidence) -> float | None:
    """Return the share of kernels that fill tensors; None where nobody profiled."""
    rows = evidence.operators
    return _sum(row.share for row in rows if "fill" in row.name.lower()) if rows else None


_UNFUSED = re.compile(
    r"mem(ory)?[-_ ]?eff|efficient[-_ ]?attention|fmha_cutlass"
    r"|(?<!\w)(?>\w*?cutlass[fb])(?>\w*?_f)\w+_aligned"
)
"""Attention of torch for masks, widths and types that FlashAttention does not take."""


def fallback_attention(evidence: Evidence) -> float | None:
    """Return the share of kernels that attention takes where the flash kernels do not fit.

    With a dense mask they compute what is masked as well, and read the mask for it.
    """
    rows = evidence.operators
    named = (row.share for row in rows if _UNFUSED.search(row.name.lower()))
    return _sum(named) if rows else None


_OLDER = re.compile(
    r"volta|turing|ampere|sm_?[78]\d|(884|1688|16816)(gemm|fprop|dgrad|wgrad|cudnn)"
)
"""Kernels of compute capability 7.0 to 8.9, by what cuBLAS, cuDNN and CUTLASS call them."""
NEWER = 9.0
"""From here on matrix units have instructions of their own (CUDA: wgmma, tcgen05)."""


def older_kernels(evidence: Evidence) -> float | None:
    """Return the share of kernels that are written for matrix units before those of the GPU."""
    rows = evidence.operators
    if not rows or (lowest_capability(evidence) or 0) < NEWER:
        return None
    return _sum(row.share for row in rows if _OLDER.search(row.name.lower()))


_MOVES = re.compile(r"^\W*(cuda )?mem(cpy|set)\b")
"""Rows that are not kernels."""


def _own(row: Operator | HostFunction) -> bool:
    known = family(row.name) not in (None, "elementwise", "direct", "scores")
    return not known and not row.name.startswith("aten::")


def _sum(shares: Iterable[float]) -> float:
    return min(1.0, sum(shares))
