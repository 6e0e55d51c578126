"""The kernel refuses a process every write outside of some folders: Landlock (Linux 5.13 and later).

https://docs.kernel.org/userspace-api/landlock.html. The numbers of the system calls are those of all architectures.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Callable, Sequence

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_BENEATH = 1
_VERSION = 1
_NO_NEW_PRIVILEGES = 38
_WRITES = sum(1 << bit for bit in (1, 4, 5, 6, 7, 8, 9, 10, 11, 12))
"""WRITE_FILE, REMOVE_DIR, REMOVE_FILE, MAKE_CHAR, _DIR, _REG, _SOCK, _FIFO, _BLOCK, _SYM."""
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_SYSTEM = ("/dev", "/proc", "/sys")


def version() -> int:
    """Of Landlock in this kernel; 0 where there is none."""
    if sys.platform != "linux":
        return 0
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        return max(0, int(libc.syscall(_CREATE, None, 0, _VERSION)))
    except (OSError, AttributeError):
        return 0


def restriction(folders: Sequence[str]) -> Callable[[], None] | None:
    """A function that restricts the process that calls it, and all that it starts, to writing below these folders and
    in the kernel's own file systems; None where the kernel cannot. To be called between fork and exec."""
    found = version()
    if not found:
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    handled = _WRITES | (_REFER if found >= 2 else 0) | (_TRUNCATE if found >= 3 else 0)
    attributes = struct.pack("Q", handled)
    # Opened here: between fork and exec as little as possible is done.
    roots = [os.open(one, os.O_PATH | os.O_CLOEXEC) for one in (*folders, *_SYSTEM) if os.path.isdir(one)]

    def restrict() -> None:
        rules = libc.syscall(_CREATE, attributes, len(attributes), 0)
        if rules < 0:
            raise OSError(ctypes.get_errno(), "landlock_create_ruleset")
        for root in roots:
            rule = struct.pack("=Qi", handled, root)
            if libc.syscall(_ADD, rules, _BENEATH, rule, 0) < 0:
                raise OSError(ctypes.get_errno(), "landlock_add_rule")
        if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.syscall(_RESTRICT, rules, 0) < 0:
            raise OSError(ctypes.get_errno(), "landlock_restrict_self")
        os.close(rules)

    return restrict
