"""The kernel refuses a process changes outside of some folders: Landlock (Linux 5.13 and later) and a seccomp filter.

Landlock decides by folder who may write, make and remove files (https://docs.kernel.org/userspace-api/landlock.html).
It does not know modes, owners, times and extended attributes: for those the filter makes each call succeed without an
effect, everywhere (https://docs.kernel.org/userspace-api/seccomp_filter.html).
"""

from __future__ import annotations

import ctypes
import os
import platform
import stat
import struct
import sys
from collections.abc import Callable, Iterator, Sequence

_CREATE, _ADD, _RESTRICT = 444, 445, 446
"""System calls, with the same numbers on all architectures."""
_BENEATH = 1
_VERSION = 1
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2
_WRITE_FILE = 1 << 1
_WRITES = sum(1 << bit for bit in (1, 4, 5, 6, 7, 8, 9, 10, 11, 12))
"""WRITE_FILE, REMOVE_DIR, REMOVE_FILE, MAKE_CHAR, _DIR, _REG, _SOCK, _FIFO, _BLOCK, _SYM."""
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_PROC, _DEV = "/proc", "/dev"
_NOT_DEVICES = ("shm", "mqueue", "hugepages")

_CALLS = {
    # Audit's number; chmod, fchmod, chown, fchown, lchown, utime, (l,f)setxattr, (l,f)removexattr, utimes, fchownat,
    # futimesat, fchmodat, utimensat, fchmodat2, setxattrat, removexattrat; truncate.
    "x86_64": (
        0xC000003E,
        (90, 91, 92, 93, 94, 132, 188, 189, 190, 197, 198, 199, 235, 260, 261, 268, 280, 452, 463, 466),
        76,
    ),
    "aarch64": (0xC00000B7, (5, 6, 7, 14, 15, 16, 52, 53, 54, 55, 88, 452, 463, 466), 45),
}
_LOAD, _JUMP_IF, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_ACCESS, _NO_CALL = 13, 38
_CALL_AT, _ARCHITECTURE_AT = 0, 4
"""Where `struct seccomp_data` has them."""


def version() -> int:
    """Of Landlock in this kernel; 0 where there is none, or where the filter does not know the architecture."""
    if sys.platform != "linux" or platform.machine() not in _CALLS:
        return 0
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        return max(0, int(libc.syscall(_CREATE, None, 0, _VERSION)))
    except (OSError, AttributeError):
        return 0


def restriction(folders: Sequence[str]) -> Callable[[], None] | None:
    """A function that restricts the process that calls it, and all that it starts, to changes below these folders and
    to writing to devices and to ``/proc``; None where the kernel cannot. To be called between fork and exec."""
    landlock = version()
    if not landlock:
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    handled = _WRITES | (_REFER if landlock >= 2 else 0) | (_TRUNCATE if landlock >= 3 else 0)
    attributes = struct.pack("Q", handled)
    # Opened here: between fork and exec as little as possible is done.
    roots = [(os.open(one, os.O_PATH | os.O_CLOEXEC), handled) for one in (*folders, _PROC) if os.path.isdir(one)]
    roots += _devices(handled)
    program = _filter(without_truncate=landlock < 3)

    def restrict() -> None:
        rules = libc.syscall(_CREATE, attributes, len(attributes), 0)
        if rules < 0:
            raise OSError(ctypes.get_errno(), "landlock_create_ruleset")
        for root, allowed in roots:
            rule = struct.pack("=Qi", allowed, root)
            if libc.syscall(_ADD, rules, _BENEATH, rule, 0) < 0:
                raise OSError(ctypes.get_errno(), "landlock_add_rule")
        if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.syscall(_RESTRICT, rules, 0) < 0:
            raise OSError(ctypes.get_errno(), "landlock_restrict_self")
        os.close(rules)
        array = ctypes.create_string_buffer(program, len(program))
        header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(array))
        if libc.prctl(_SECCOMP, _FILTER, ctypes.c_char_p(header), 0, 0):
            raise OSError(ctypes.get_errno(), "seccomp")

    return restrict


def _devices(handled: int) -> Iterator[tuple[int, int]]:
    """Descriptors of the devices, but not of shared memory; with what is allowed there."""
    for entry in os.scandir(_DEV):
        if entry.name in _NOT_DEVICES or entry.is_symlink():
            continue
        try:
            opened = os.open(entry.path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue
        yield opened, handled if stat.S_ISDIR(os.fstat(opened).st_mode) else handled & (_WRITE_FILE | _TRUNCATE)


def _filter(without_truncate: bool) -> bytes:
    """A program of the kernel's packet filter (``struct sock_filter``)."""
    architecture, without_effect, truncate = _CALLS[platform.machine()]

    def line(code: int, if_true: int, if_false: int, value: int) -> bytes:
        return struct.pack("HBBI", code, if_true, if_false, value)

    made = [
        line(_LOAD, 0, 0, _ARCHITECTURE_AT),
        line(_JUMP_IF, 1, 0, architecture),
        line(_RETURN, 0, 0, _FAIL | _NO_CALL),
        line(_LOAD, 0, 0, _CALL_AT),
    ]
    for call in without_effect:
        made += [line(_JUMP_IF, 0, 1, call), line(_RETURN, 0, 0, _FAIL)]
    if without_truncate:
        made += [line(_JUMP_IF, 0, 1, truncate), line(_RETURN, 0, 0, _FAIL | _ACCESS)]
    return b"".join([*made, line(_RETURN, 0, 0, _ALLOW)])
