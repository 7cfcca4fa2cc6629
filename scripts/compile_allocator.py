"""Compile ``estimate/memory/allocator.c``: ``python scripts/compile_allocator.py [PLATFORM]``.

Without a platform, this computer's compiler makes the library next to its source. Where none is
here nothing is made, and the same replay in Python serves. With a platform, zig makes it, which
compiles for all from any, and the path is printed. The library stands on nothing, not even
libc. Its name holds a checksum of the source, so that no other source ever meets it.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from zlib import crc32

ROOT = Path(__file__).parents[1]
SOURCE = next(ROOT.glob("app/trainwright/**/allocator.c"))
FLAGS = ("-O2", "-fwrapv", "-shared", "-fvisibility=hidden", "-fno-stack-protector", "-nostdlib")
TARGETS = {
    "manylinux_2_17_x86_64": ("x86_64-linux-gnu.2.17", "so"),
    "manylinux_2_17_aarch64": ("aarch64-linux-gnu.2.17", "so"),
    "macosx_10_13_x86_64": ("x86_64-macos.10.13", "dylib"),
    "macosx_11_0_arm64": ("aarch64-macos.11.0", "dylib"),
    "win_amd64": ("x86_64-windows-gnu", "dll"),
    "win_arm64": ("aarch64-windows-gnu", "dll"),
}
"""zig's name of each platform that wheels are made for, and how its libraries end."""


def library(suffix: str) -> str:
    """Return the name of the library of the source as it is."""
    return f"liballocator-{crc32(SOURCE.read_bytes()):08x}.{suffix}"


def refresh() -> Path | None:
    """Return this computer's library, made where it is absent; None without a compiler."""
    path = SOURCE.with_name(library("dylib" if sys.platform == "darwin" else "so"))
    if path.exists():
        return path
    compiler = next(filter(shutil.which, (os.environ.get("CC", ""), "cc", "gcc", "clang")), None)
    if compiler is None or sys.platform == "win32":
        return None
    for old in path.parent.glob("liballocator-*"):
        old.unlink()
    made = subprocess.run([compiler, "-fPIC", *FLAGS, "-o", path, SOURCE], capture_output=True)
    return path if made.returncode == 0 else None


def cross_compiled(platform: str) -> Path:
    """Return the library for a platform of ``TARGETS``; ``ziglang`` has to be installed."""
    target, suffix = TARGETS[platform]
    path = ROOT / "build" / platform / library(suffix)
    path.parent.mkdir(parents=True, exist_ok=True)
    own = ["-Wl,--no-entry"] if suffix == "dll" else ["-fPIC"]
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", target, "-s", *own]
    subprocess.run([*zig, *FLAGS, "-o", path, SOURCE], check=True)
    return path


if __name__ == "__main__":
    print(cross_compiled(sys.argv[1]) if sys.argv[1:] else refresh() or "")
