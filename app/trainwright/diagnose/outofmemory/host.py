"""System memory that ran out: refused, or the process ended by the system."""

import re
from dataclasses import replace

from trainwright.diagnose.outofmemory.account import COUNT, SIZE, Explanation, fix
from trainwright.diagnose.outofmemory.forms import form

_ASKED = (
    re.compile(f"tried to allocate {SIZE}"),
    re.compile(f"unable to mmap {SIZE}"),
    re.compile(f"Unable to allocate {SIZE} for an array"),
    re.compile(f"malloc of size {COUNT} failed"),  # Arrow
    re.compile(f"failed to allocate buffer of size {COUNT}"),  # llama.cpp
)
LOADING = re.compile(
    r"Loading checkpoint shards|Loading pipeline|from_pretrained|safetensors|torch\.load\b"
    r"|load_state_dict|load_checkpoint|Loading (?:model|weights)"
)
"""Words of a program that reads weights."""
ENGINE = re.compile(r"llama|gguf|ggml", re.IGNORECASE)
WSL = re.compile(r"microsoft-standard-WSL|/mnt/[a-z]/|\bWSL ?2?\b")
SWAPPING = fix("swapping")
"""What to do where nothing tells what the program did."""
NEAR = 4000
"""Characters before an error in which it shows what the program was doing; assumed."""


def in_its_place(found: Explanation, text: str, at: int) -> Explanation:
    """Return the explanation with the fixes that fit what the program did: weights, WSL."""
    if found.kind != "host":
        return found
    fixes = found.fixes
    near = slice(max(0, at - NEAR), at + NEAR)
    for words, better in ((ENGINE, ("smaller-model", "ollama")), (LOADING, ("loading",))):
        if SWAPPING in fixes and words.search(text[near]):
            fixes = (*(each for each in fixes if each != SWAPPING), *map(fix, better))
    if WSL.search(text):
        fixes = (*fixes, fix("wsl"))
    return replace(found, fixes=fixes)


FORMS = (
    form(
        re.compile(
            r"failed to extend /dev/shm/nccl"
            r"|Error while creating shared memory segment \S{0,60}nccl"
        ),
        "shared-memory",
        "nccl-shared",
        "shared-memory",
    ),
    form(
        re.compile(
            r"[Bb]us error|out of shared memory|unable to (?:write to file|mmap)[^.]{0,200}/?torch_"
            r"|No space left on device[^.]{0,200}(?:shm|torch_|/psm_)|\(SIGBUS\)"
            r"|(?:shm|shared_memory)[^.]{0,100}No space left on device"
            r"|unable to allocate shared memory\(shm\)"
        ),
        "shared-memory",
        "shared-memory",
        "shared-memory",
        "no-workers",
    ),
    form(
        re.compile(r"WinError 1455|paging file is too small|os error 1455"),
        "host",
        "page-file",
        "page-file",
    ),
    form(
        re.compile(r"requires more system memory"),
        "host",
        "host",
        "smaller-model",
        "ollama",
        asked=re.compile(rf"requires more system memory \({SIZE}\)"),
        free=re.compile(rf"than is available \({SIZE}\)"),
    ),
    form(
        re.compile(
            r"OOMKilled(?!\"?: ?false)|oom[-_ ]kill(?:ed)? event|memory limit at some point"
            r"|exceeded (?:job |step )?memory limit|Exceeded (?:job |step )?memory limit"
            r"|task [0-9]+: Out Of Memory|cgroup out-of-memory handler"
            r"|\bOUT_OF_ME(?:\+|MORY\b)|TERM_MEMLIMIT|low on resource: memory"
            r"|Memory cgroup out of memory: Kill|CONSTRAINT_MEMCG"
        ),
        "host",
        "container",
        "container",
        "swapping",
        process=re.compile(f"anon-rss:{SIZE}"),
        allowed=re.compile(rf"Limits: (?:cpu: \S+ )?memory: {SIZE}"),
    ),
    form(
        re.compile(r"[Oo]ut of memory: Kill(?:ed)? process|invoked oom-killer|oom-kill:"),
        "host",
        "kernel",
        "swapping",
        process=re.compile(f"anon-rss:{SIZE}"),
    ),
    form(
        re.compile(r"node running low on memory|ray\.exceptions\.OutOfMemoryError"),
        "host",
        "ray",
        "ray",
    ),
    form(
        re.compile(
            r"session crashed after using all available RAM|tried to allocate more memory than is"
            r" available"
        ),
        "host",
        "notebook",
        "notebook",
    ),
    form(re.compile(r"java\.lang\.OutOfMemoryError"), "host", "java", "java"),
    form(
        re.compile(
            r"DefaultCPUAllocator|[Cc]annot allocate memory|can't allocate memory|\bMemoryError"
            r"|_ArrayMemoryError|ArrowMemoryError|bad_alloc|WinError 8\]|메모리를 할당할 수 없"
            r"|cpu_buffer_type_alloc_buffer: failed to allocate buffer"
            r"|OOM when allocating tensor(?:(?!device:).){0,300}device:CPU"
        ),
        "host",
        "host",
        "swapping",
        asked=_ASKED,
    ),
)
"""What is looked for, the most telling first."""

ENDED = (
    form(
        re.compile(
            r"worker \(pid\(?s?\)? [0-9, ]+\) (?:is killed by signal: Killed|exited unexpectedly)"
        ),
        "worker",
        "worker",
        "swapping",
        "no-workers",
    ),
    form(
        re.compile(
            r"(?:^|\s)(?:[Kk]illed|죽었음) ?$|line [0-9]+: [0-9]+ Killed\b"
            r"|(?:exit|Exit|return|terminated with) ?code[\"' ]{0,3}(?:[:=] ?)?-9\b"
            r"|[Ee]xit(?:ed)?(?: with)? ?(?:code|status|Code)?[\"']? ?[:=(]? ?137\b"
            r"|Signal 9 \(SIGKILL\) received|signal: killed"
        ),
        "host",
        "killed",
        "kernel-log",
        "swapping",
    ),
    form(
        re.compile(r"appears to have died|Kernel (?:crashed|died)"),
        "host",
        "died",
        "kernel-log",
        "notebook",
    ),
)
"""What launchers and shells say of a process that another error may have ended."""
