"""A file without a name for measuring a drive: when its last user ends, however, it is gone.

Nothing but such files is written, and nothing that exists is opened.
"""

import ctypes
import errno
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress

from refusal import Refusal

BLOCK = 1 << 20
FREE_SHARE = 0.1
"""Of the filesystem that must stay free; assumed: fuller drives write slowly, and so do systems."""
MEMORY_FOLDERS = ("/dev/shm",)
"""The only folders below /dev that hold plain files."""
SYSTEM_FOLDERS = ("/dev", "/proc", "/sys")

MAGIC = {
    0x01021994: "tmpfs", 0x858458F6: "ramfs", 0x9123683E: "btrfs", 0x2FC12FC1: "zfs",
    0xCA451A4E: "bcachefs", 0xF2F52010: "f2fs", 0xEF53: "ext4", 0x58465342: "xfs",
    0x6969: "nfs", 0xFF534D42: "cifs", 0xFE534D42: "smb2", 0x517B: "smb", 0x00C36400: "ceph",
    0x01021997: "9p", 0x65735546: "fuse", 0x794C7630: "overlay", 0x0BD00BD0: "lustre",
    0x47504653: "gpfs", 0x19830326: "fhgfs", 0x2011BAB0: "exfat", 0x4D44: "vfat",
    0x5346544E: "ntfs", 0x7366746E: "ntfs3", 0x6165676C: "pstore", 0x73717368: "squashfs",
}  # fmt: skip
"""``f_type`` of statfs(2), by ``linux/magic.h``; ZFS, GPFS, Lustre, BeeGFS by coreutils' stat."""


def checked(folder: str, size: int) -> str:
    """Return the folder's path once it may hold a file of ``size`` bytes.

    Raises:
        Refusal: it is not a folder, a link, the system's own, or too full.
    """
    try:
        mode = os.lstat(folder).st_mode
    except (OSError, ValueError) as error:
        raise Refusal("bench.no-folder", folder=folder, reason=_said(error)) from error
    if stat.S_ISLNK(mode):
        raise Refusal("bench.link", folder=folder, target=os.path.realpath(folder))
    if not stat.S_ISDIR(mode):
        raise Refusal("bench.not-folder", folder=folder)
    path = os.path.realpath(folder)
    if _below(path, SYSTEM_FOLDERS) and not _below(path, MEMORY_FOLDERS):
        raise Refusal("bench.system-folder", folder=folder)
    usage = shutil.disk_usage(path)
    need = max(2 * size, FREE_SHARE * usage.total)
    if usage.free < need:
        raise Refusal("bench.full", folder=folder, free=usage.free, need=need)
    return path


def _below(path: str, folders: tuple[str, ...]) -> bool:
    return any(path == folder or path.startswith(folder + "/") for folder in folders)


def nameless(folder: str) -> int:
    """Return the descriptor of a new file without a name, open for reading and writing.

    Where the filesystem knows none (``O_TMPFILE``), a new one loses its name at once.

    Raises:
        Refusal: nothing can be written there.
    """
    try:
        if hasattr(os, "O_TMPFILE"):
            with suppress(OSError):
                return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
        descriptor, path = tempfile.mkstemp(prefix=".trainwright-", dir=folder)  # O_EXCL
    except OSError as error:
        raise Refusal("bench.unwritable", folder=folder, reason=_said(error)) from error
    if sys.platform == "win32":  # open files keep their names there: this one goes with its user
        os.close(descriptor)
        return os.open(path, os.O_RDWR | os.O_BINARY | os.O_TEMPORARY)
    os.unlink(path)
    return descriptor


def fill(descriptor: int, size: int, done: Callable[[float], None]) -> None:
    """Write ``size`` bytes that no filesystem can compress or find twice, to the drive itself.

    Raises:
        Refusal: the drive is full, or a quota or limit is reached.
    """
    try:
        for start in range(0, size, BLOCK):
            _write_whole(descriptor, os.urandom(min(BLOCK, size - start)), start)
            if start % (32 * BLOCK) == 0:
                done(start / size)
        os.fsync(descriptor)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise Refusal("bench.filled-up", written=start, reason=_said(error)) from error
        raise Refusal("bench.drive-error", reason=_said(error)) from error
    forget(descriptor)


def _write_whole(descriptor: int, block: bytes, start: int) -> None:
    """Write a block; a drive that is filling up takes a part of it first."""
    left = memoryview(block)
    while left:
        os.lseek(descriptor, start, os.SEEK_SET)
        written = os.write(descriptor, left)
        left, start = left[written:], start + written


def forget(descriptor: int) -> None:
    """Ask the system to drop the file from its page cache; it may be unable to."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def again(descriptor: int, flags: int) -> int:
    """Return another descriptor of a nameless file; only Linux finds one without a name.

    Raises:
        OSError: not with these flags, as ``O_DIRECT`` where a filesystem has none.
    """
    return os.open(f"/proc/self/fd/{descriptor}", flags | os.O_CLOEXEC)


def filesystem(descriptor: int) -> str:
    """Return the name of the filesystem that a file is on; empty where it is not told."""
    if sys.platform != "linux":
        return ""
    answer = (ctypes.c_long * 32)()  # struct statfs: f_type comes first; 120 bytes in all
    if ctypes.CDLL(None).fstatfs(descriptor, ctypes.byref(answer)):
        return ""
    magic = answer[0] & 0xFFFFFFFF
    return MAGIC.get(magic, f"0x{magic:x}")


def mounted(path: str) -> tuple[str, str]:
    """Return (device, options) of the mount that holds a path; empty where it is not told."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
            lines = [line.split() for line in file]
    except OSError:
        return "", ""
    found, most = ("", ""), -1
    for words in lines:
        place = words[4].encode("ascii", "replace").decode("unicode_escape")
        if len(place) >= most and (place == "/" or _below(path, (place,))):
            rest = words[words.index("-") + 1 :]
            found, most = (words[2], ",".join([words[5], *rest[2:3]])), len(place)
    return found


def _said(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
