"""What a program changed outside of itself: files with their properties, /dev/shm, processes, sockets. Linux only."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SHM = Path("/dev/shm")
_TRANSIENT = ("torch_", "psm_", "sem.", "mnt_", "__KMP_", "nccl-", "cuda.shm")
"""Names in /dev/shm that other programs of the machine make and remove all the time."""
_OF_TESTS = "tb_dlprof_"
"""How names of the tests in other workers begin."""
_LISTENS = "0A"
"""State of a TCP socket in /proc/net/tcp."""
_GRACE_S = 5.0
_FIELDS = ("kind", "mode", "owner", "links", "size", "modified", "changed", "content", "xattrs")
_Tree = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Watched:
    """The state at one time of what a program could change.

    Attributes:
        mark: a string in the environment of the program's processes. If empty, those count that work in the folder.
        names: what the names in /dev/shm begin with that count; other programs of the machine use it meanwhile.
        files, shm: by path, the properties of each file.
        sockets: where the program's processes and this one wait for peers.
    """

    folder: Path
    mark: str
    names: str
    files: _Tree
    shm: _Tree
    processes: dict[str, str]
    sockets: frozenset[str]

    @classmethod
    def take(cls, folder: Path, mark: str = "", names: str = "") -> Watched:
        """The state now. Times of last access are not part of it."""
        folder = Path(folder).resolve()
        processes = _processes(folder, mark)
        return cls(folder, mark, names, _tree(folder), _shm(names), processes, _sockets(processes))

    def changes(self) -> list[str]:
        """What differs now, a sentence each. Processes, sockets and shared memory have some seconds to go."""
        end = time.monotonic() + _GRACE_S
        while (left := self._left()) and time.monotonic() < end:
            time.sleep(0.1)
        return [*_differences("", self.files, _tree(self.folder)), *left]

    def _left(self) -> list[str]:
        now = _processes(self.folder, self.mark)
        found = _differences(f"{_SHM}/", self.shm, _shm(self.names))
        found += [f"process {number} is left: {now[number]}" for number in sorted(now.keys() - self.processes.keys())]
        return found + [f"socket {one} is left" for one in sorted(_sockets(now) - self.sockets)]


def _differences(prefix: str, before: _Tree, after: _Tree) -> list[str]:
    found = [f"{prefix}{path} is new" for path in after.keys() - before.keys()]
    # Other programs remove their own shared memory.
    found += [f"{prefix}{path} is gone" for path in before.keys() - after.keys() if not _is_transient(prefix, path)]
    for path in before.keys() & after.keys():
        old, new = before[path], after[path]
        changed = [name for name in _FIELDS if old[name] != new[name] and not _is_transient(prefix, path)]
        found += [f"{prefix}{path}: {name} was {old[name]!r}, is {new[name]!r}" for name in changed]
    return sorted(found)


def _is_transient(prefix: str, path: str) -> bool:
    return bool(prefix) and path.startswith(_TRANSIENT)


def _shm(names: str) -> _Tree:
    """Without its own times, and without what a running process maps."""
    maps = [_read(path / "maps") for path in Path("/proc").glob("[0-9]*")]
    mapped = {
        line.rpartition(f"{_SHM}/")[2].strip() for text in maps for line in text.splitlines() if f"{_SHM}/" in line
    }
    return {
        path: of
        for path, of in _tree(_SHM).items()
        if path != "." and path.startswith(names) and path not in mapped and (names or not path.startswith(_OF_TESTS))
    }


def _tree(folder: Path) -> _Tree:
    """Symbolic links are not followed; what vanishes meanwhile is left out."""
    found = {}
    for where, folders, files in os.walk(folder):
        for path in (Path(where, name) for name in ["."] * (where == str(folder)) + folders + files):
            try:
                found[str(path.relative_to(folder))] = _properties(path)
            except OSError:
                continue
    return found


def _properties(path: Path) -> dict[str, Any]:
    of, content = path.lstat(), ""
    if stat.S_ISREG(of.st_mode) and os.access(path, os.R_OK):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
    elif stat.S_ISLNK(of.st_mode):
        content = os.readlink(path)
    size = 0 if stat.S_ISDIR(of.st_mode) else of.st_size
    xattrs = {
        name: os.getxattr(path, name, follow_symlinks=False) for name in os.listxattr(path, follow_symlinks=False)
    }
    values = (stat.S_IFMT(of.st_mode), oct(stat.S_IMODE(of.st_mode)), (of.st_uid, of.st_gid), of.st_nlink, size)
    return dict(zip(_FIELDS, (*values, of.st_mtime_ns, of.st_ctime_ns, content, xattrs), strict=True))


def _processes(folder: Path, mark: str) -> dict[str, str]:
    """Command lines of the program's processes by number."""
    found = {}
    for path in (path for path in Path("/proc").glob("[0-9]*") if path.name != str(os.getpid())):
        try:
            where = Path(os.readlink(path / "cwd"))
        except OSError:
            continue
        command = _read(path / "cmdline").replace("\0", " ").strip()
        if command and (mark in _read(path / "environ") if mark else folder in [where, *where.parents]):
            found[path.name] = command[:200]
    return found


def _sockets(processes: dict[str, str]) -> frozenset[str]:
    """Listening TCP sockets, bound UDP ones and named Unix ones that these processes or this one hold."""
    held, found = set(), set()
    for number in [*processes, str(os.getpid())]:
        for link in Path(f"/proc/{number}/fd").glob("*"):
            try:
                held.add(os.readlink(link).removeprefix("socket:[").removesuffix("]"))
            except OSError:
                continue
    for table in ("tcp", "tcp6", "udp", "udp6", "unix"):
        for row in (line.split() for line in _read(Path(f"/proc/net/{table}")).splitlines()[1:]):
            if table == "unix" and len(row) > 7 and row[6] in held:
                found.add(f"unix {row[7]}")
            elif table != "unix" and row[9] in held and (table.startswith("udp") or row[3] == _LISTENS):
                found.add(f"{table} {row[1]}")
    return frozenset(found)


def _read(path: Path) -> str:
    """Empty for a process that has ended or is another user's."""
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError:
        return ""
