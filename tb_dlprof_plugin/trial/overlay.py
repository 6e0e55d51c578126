"""Gives a process a view of all files in which its writes are thrown away: overlayfs in a mount namespace of its own.

Each directory shows the files that are there. Writes, changes and removals go to layers that the caller removes
(https://docs.kernel.org/filesystems/overlayfs.html). A process without privileges gets a user namespace, too (Linux
5.11 and later). Shared memory, System V's as well, belongs to the process alone. The network and the devices stay the
machine's. Of the standard library alone: it runs between fork and exec.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shutil
import stat
from dataclasses import dataclass, field

_NEW_MOUNTS, _NEW_IPC, _NEW_USER = 0x20000, 0x8000000, 0x10000000
_BIND, _RECURSIVE, _PRIVATE = 4096, 16384, 1 << 18
_MOUNT_SETATTR, _CURRENT_FOLDER, _ALL_BELOW, _READ_ONLY = 442, -100, 0x8000, 1
"""The system call has the same number on all architectures (Linux 5.12 and later)."""
_KERNEL_FOLDERS = ("/dev", "/proc", "/sys")
_SETTINGS = ("/sys", "/proc/sys")
_SHARED_MEMORY = "/dev/shm"
_SMALL_FILE_BYTES = 1 << 20


@dataclass
class View:
    """What the process is to see.

    Attributes:
        layers: an existing folder for what the process writes; `remove_folder` removes it.
        shared: folders that stay the machine's: what the process writes there remains.
    """

    layers: str
    shared: tuple[str, ...]
    _points: list[str] = field(default_factory=list)
    _as_user: bool = False
    _count: int = 0

    def enter(self) -> None:
        """Make the view that of the calling process and of all that it starts. Its working directory stays.

        Raises:
            OSError: the kernel refuses it. The process must not go on.
        """
        folder = os.getcwd()
        self._as_user = _new_namespaces()
        self._points = _mount_points(folder)
        _mount(None, "/", None, _RECURSIVE | _PRIVATE)
        # Gone with the namespace.
        os.makedirs(self._memory, exist_ok=True)
        _mount("tmpfs", self._memory, "tmpfs", 0, "mode=0755")
        os.mkdir(self._root)
        self._show("/")
        self._show_kernel()
        for path in (*_sockets(), *self.shared):
            with contextlib.suppress(FileNotFoundError):
                self._bind(path, below=0)
        os.chroot(self._root)
        os.chdir(folder)

    @property
    def _memory(self) -> str:
        return os.path.join(self.layers, "memory")

    @property
    def _root(self) -> str:
        return os.path.join(self._memory, "root")

    def _show(self, path: str) -> None:
        """Show a directory with all file systems below it."""
        inside = [point for point in self._points if _is_below(point, path)]
        if self._overlay(path):
            for point in inside:
                if not any(_is_below(point, other) for other in inside):
                    self._show_point(point)
        elif inside:
            # A user's overlay may not uncover what other mounts hide: entry by entry.
            with contextlib.suppress(PermissionError):
                for entry in os.scandir(path):
                    if entry.path not in _KERNEL_FOLDERS:
                        self._show_entry(entry)
        else:
            # A file system that no overlay can lie on, such as autofs.
            self._show_read_only(path)

    def _show_point(self, path: str) -> None:
        if os.path.isdir(path):
            self._show(path)
        else:
            self._show_read_only(path)

    def _show_entry(self, entry: os.DirEntry[str]) -> None:
        target = self._root + entry.path
        if entry.is_symlink():
            os.symlink(os.readlink(entry.path), target)
        elif entry.is_dir(follow_symlinks=False):
            os.mkdir(target)
            self._show(entry.path)
        elif _is_small(entry):
            shutil.copy2(entry.path, target)
        else:
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY))
            self._show_read_only(entry.path)

    def _show_read_only(self, path: str) -> None:
        with contextlib.suppress(OSError):
            self._bind(path)
            _make_read_only(self._root + path)

    def _show_kernel(self) -> None:
        for path in _KERNEL_FOLDERS:
            if os.path.isdir(path):
                os.makedirs(self._root + path, exist_ok=True)
                self._bind(path)
        for path in _SETTINGS:
            if os.path.isdir(path):
                self._bind(path)
                _make_read_only(self._root + path)
        if os.path.isdir(_SHARED_MEMORY) and not self._overlay_in(self._memory, _SHARED_MEMORY):
            _mount("tmpfs", self._root + _SHARED_MEMORY, "tmpfs", 0, "mode=1777")

    def _bind(self, path: str, below: int = _RECURSIVE) -> None:
        _mount(path, self._root + path, None, _BIND | below)

    def _overlay(self, path: str) -> bool:
        # In memory where the layers' file system cannot take what is written, being an overlay itself.
        return self._overlay_in(self.layers, path) or self._overlay_in(self._memory, path)

    def _overlay_in(self, folder: str, path: str) -> bool:
        self._count += 1
        made = os.path.join(folder, str(self._count))
        upper, work = os.path.join(made, "upper"), os.path.join(made, "work")
        for one in (made, upper, work):
            os.mkdir(one)
        seen = os.stat(path)
        with contextlib.suppress(OSError):
            os.chown(upper, seen.st_uid, seen.st_gid)
        os.chmod(upper, stat.S_IMODE(seen.st_mode))
        options = f"lowerdir={_escaped(path)},upperdir={_escaped(upper)},workdir={_escaped(work)}"
        # With redirects a folder can be renamed, which a user's overlay refuses as a move to another file system.
        options += ",userxattr" if self._as_user else ",redirect_dir=on"
        try:
            _mount("overlay", self._root + path, "overlay", 0, options)
        except OSError:
            return False
        return True


def remove_folder(folder: str | os.PathLike[str]) -> None:
    """Remove a folder of ours with the layers in it. Never raises."""

    def unlock(remove: object, path: str, error: object) -> None:
        # Overlayfs makes a working directory that its owner may not list.
        with contextlib.suppress(OSError):
            if stat.S_ISDIR(os.lstat(path).st_mode):
                os.chmod(path, 0o700)
                shutil.rmtree(path, ignore_errors=True)

    shutil.rmtree(folder, onerror=unlock)


def _new_namespaces() -> bool:
    """Leave the machine's; whether that needed a user namespace."""
    user, group = os.geteuid(), os.getegid()
    with contextlib.suppress(OSError):
        _call("unshare", _NEW_MOUNTS | _NEW_IPC)
        return False
    _call("unshare", _NEW_USER | _NEW_MOUNTS | _NEW_IPC)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    return True


def _mount_points(folder: str) -> list[str]:
    """What gets an overlay of its own: mounted file systems but the kernel's, and folders of others in which the user
    may have made folders, because an overlay cannot copy a folder of another user."""
    with open("/proc/self/mountinfo", errors="surrogateescape") as file:
        points = [re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), line.split()[4]) for line in file]
    home = os.path.realpath(os.path.expanduser("~"))
    points += ["/var/tmp", folder, *_folders_of_others(folder), *_folders_of_others(home)]
    return [
        one
        for one in dict.fromkeys(points)
        if one != "/" and os.path.exists(one) and not any(one == top or _is_below(one, top) for top in _KERNEL_FOLDERS)
    ]


def _folders_of_others(folder: str) -> list[str]:
    """Of those above a folder."""
    above = [folder]
    while above[-1] not in ("/", ""):
        above.append(os.path.dirname(above[-1]))
    return [one for one in above[1:] if os.path.isdir(one) and os.stat(one).st_uid != os.geteuid()]


def _sockets() -> list[str]:
    """Paths that programs listen on: a connection through an overlay is refused."""
    with open("/proc/self/net/unix", errors="surrogateescape") as file:
        paths = {words[7].rstrip("\n") for line in file if len(words := line.split(" ", 7)) == 8}
    return [one for one in sorted(paths) if one.startswith("/") and _is_socket(one)]


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False


def _is_small(entry: os.DirEntry[str]) -> bool:
    return entry.is_file() and entry.stat().st_size <= _SMALL_FILE_BYTES and os.access(entry.path, os.R_OK)


def _is_below(path: str, folder: str) -> bool:
    return path != folder and path.startswith(folder.rstrip("/") + "/")


def _escaped(path: str) -> str:
    return re.sub(r"([\\:,])", r"\\\1", path)


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    words = (None if one is None else os.fsencode(one) for one in (source, target, kind))
    _call("mount", *words, ctypes.c_ulong(flags), None if options is None else os.fsencode(options), what=target)


def _make_read_only(path: str) -> None:
    attributes = (ctypes.c_uint64 * 4)(_READ_ONLY, 0, 0, 0)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    _call(
        "syscall", _MOUNT_SETATTR, _CURRENT_FOLDER, os.fsencode(path), _ALL_BELOW, ctypes.byref(attributes), size,
        what=path,
    )  # fmt: skip


def _call(name: str, *arguments: object, what: str = "") -> None:
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what or name)
