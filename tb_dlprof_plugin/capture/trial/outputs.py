"""Keeps all that a script writes in a folder of its own: its files stay as they are.

A layer of copies over Python's functions for files: what is written, made or removed is so below the scratch folder,
and is seen from there when it is looked for again. What libraries write from native code is redirected where
it is known how (`torch.save`, safetensors); the rest is refused by the kernel where it can
(`tb_dlprof_plugin.trial.landlock`).
Installed at the start of Python, before the script or a library runs. Of the standard library alone.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import functools
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import Any

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PASSED = ("/dev/", "/proc/", "/sys/")
_MOST_LINKS = 40
_MOST_FOLDERS = 10_000
"""Whose real path is kept."""
_layer: _Layer | None = None


def install(scratch: str, writable: tuple[str, ...] = ()) -> None:
    """Redirect all writes of this process below ``scratch``, but for what lies in it or in ``writable``."""
    global _layer
    if _layer is None:
        _layer = _Layer(scratch, writable)
        _layer.install()


def redirect_libraries() -> None:
    """Redirect what libraries write from native code; those that are imported by now."""
    if _layer is None:
        return
    torch: Any = sys.modules.get("torch")
    if torch is not None and not hasattr(torch.save, "_redirected"):
        torch.save = _by_file(torch.save)
        torch.serialization.save = torch.save
    safetensors: Any = sys.modules.get("safetensors.torch")
    if safetensors is not None and not hasattr(safetensors.serialize_file, "_redirected"):
        safetensors.serialize_file = _by_path(safetensors.serialize_file, _layer)


def _by_file(save: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(save)
    def redirected(obj: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(f, str | os.PathLike):
            return save(obj, f, *args, **kwargs)
        with open(f, "wb") as file:
            return save(obj, file, *args, **kwargs)

    redirected._redirected = True  # type: ignore[attr-defined]
    return redirected


def _by_path(write: Callable[..., Any], layer: _Layer) -> Callable[..., Any]:
    @functools.wraps(write)
    def redirected(data: Any, filename: Any, *args: Any, **kwargs: Any) -> Any:
        return write(data, layer.for_writing(filename, keep=False), *args, **kwargs)

    redirected._redirected = True  # type: ignore[attr-defined]
    return redirected


class _Layer:
    def __init__(self, scratch: str, writable: tuple[str, ...]) -> None:
        self._root = os.path.join(os.path.realpath(scratch), "files")
        self._own = tuple(os.path.realpath(one) + os.sep for one in (scratch, *writable))
        self._removed: set[str] = set()
        self._folders: dict[str, str] = {}
        self._os = {name: getattr(os, name) for name in _REPLACED}
        self._open = io.open
        os.makedirs(self._root, exist_ok=True)

    # ---- paths

    def real(self, path: Any, dir_fd: int | None = None) -> str | None:
        """The absolute path that a call means, links in its directory resolved; None for what is no path of a file."""
        if isinstance(path, int) or path is None:
            return None
        try:
            name = os.fsdecode(path)
        except TypeError:
            return None
        if "\0" in name or not name:
            return None
        if dir_fd is not None and not os.path.isabs(name):
            name = os.path.join(os.readlink(f"/proc/self/fd/{dir_fd}"), name)
        folder, last = os.path.split(os.path.abspath(name))
        return os.path.join(self._realpath(folder), last)

    def _realpath(self, folder: str, depth: int = 0) -> str:
        # Not `os.path.realpath`, which would ask this layer for each part of the path.
        known = self._folders.get(folder)
        if known is not None:
            return known
        path = os.sep
        for part in folder.split(os.sep):
            if part in ("", "."):
                continue
            path = os.path.join(path, part) if part != ".." else os.path.dirname(path)
            try:
                target = os.readlink(path)
            except OSError:
                continue
            if depth < _MOST_LINKS:
                path = self._realpath(os.path.join(os.path.dirname(path), target), depth + 1)
        if len(self._folders) > _MOST_FOLDERS:
            self._folders.clear()
        self._folders[folder] = path
        return path

    def is_own(self, path: str) -> bool:
        """Whether a path may be written as it is."""
        return path.startswith(_PASSED) or any(f"{path}{os.sep}".startswith(one) for one in self._own)

    def copy_of(self, path: str) -> str:
        """Where the copy of a path lies, or would."""
        return os.path.join(self._root, path.lstrip(os.sep))

    def has_copy(self, path: str) -> bool:
        """Whether it was written here."""
        return self._exists(self.copy_of(path))

    def is_removed(self, path: str) -> bool:
        """Whether it, or a directory above it, was removed here and not made again."""
        if not self._removed:
            return False
        while True:
            if path in self._removed:
                return True
            above = os.path.dirname(path)
            if above == path:
                return False
            path = above

    def _exists(self, path: str) -> bool:
        try:
            self._os["lstat"](path)
        except OSError:
            return False
        return True

    def seen(self, path: Any, dir_fd: int | None = None) -> Any:
        """The path to read: the copy's where there is one. Raises FileNotFoundError for what was removed."""
        real = self.real(path, dir_fd)
        if real is None or self.is_own(real):
            return path
        if self.has_copy(real):
            return self.copy_of(real)
        if self.is_removed(real):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return path

    def for_writing(self, path: Any, keep: bool, dir_fd: int | None = None) -> Any:
        """The path to write: the copy's. ``keep``: with what the file holds now.

        Raises:
            FileNotFoundError: as without this layer, where there is no such directory.
        """
        real = self.real(path, dir_fd)
        if real is None or self.is_own(real):
            return path
        copy = self.copy_of(real)
        self._make_parents(os.path.dirname(real), path)
        if keep and not self._exists(copy) and self._exists(real) and not self.is_removed(real):
            if os.path.isdir(real):
                self._os["mkdir"](copy)
            else:
                with self._open(real, "rb") as source, self._open(copy, "wb") as target:
                    shutil.copyfileobj(source, target)
        return copy

    def _make_parents(self, folder: str, asked: Any) -> None:
        copy = self.copy_of(folder)
        if self._exists(copy):
            return
        if not self._exists(folder) or self.is_removed(folder):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), asked)
        self._make_parents(os.path.dirname(folder), asked)
        with contextlib.suppress(FileExistsError):
            self._os["mkdir"](copy)

    def visible(self, path: Any, dir_fd: int | None = None) -> bool:
        """Whether there is such a file or directory, as the script sees it."""
        try:
            self._os["lstat"](self.seen(path, dir_fd), **_fd(dir_fd))
        except OSError:
            return False
        return True

    # ---- functions

    def install(self) -> None:
        """Replace Python's functions."""
        for name in _REPLACED:
            setattr(os, name, _function(self._os[name], getattr(self, name)))
        for name in _REPLACED:
            # `shutil.rmtree` and others ask whether a function takes a descriptor of a directory.
            for group in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks, os.supports_effective_ids):
                if self._os[name] in group:
                    group.add(getattr(os, name))
        builtins.open = io.open = _function(self._open, self.open_file)
        os.unlink = os.remove

    def open_file(self, file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        """As `open`."""
        if isinstance(file, str | bytes | os.PathLike):
            if any(letter in mode for letter in "wax+"):
                if "x" in mode and self.visible(file):
                    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), file)
                real = self.real(file)
                target = self.for_writing(file, keep="w" not in mode)
                made = self._open(target, mode, *args, **kwargs)
                self._removed.discard(real or "")
                return made
            file = self.seen(file)
        return self._open(file, mode, *args, **kwargs)

    def open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        """As `os.open`."""
        if flags & _WRITES:
            if flags & os.O_EXCL and flags & os.O_CREAT and self.visible(path, dir_fd):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            real = self.real(path, dir_fd)
            target = self.for_writing(path, keep=not flags & os.O_TRUNC, dir_fd=dir_fd)
            descriptor: int = self._os["open"](target, flags, mode, **_fd(dir_fd if target is path else None))
            self._removed.discard(real or "")
            return descriptor
        seen = self.seen(path, dir_fd)
        opened: int = self._os["open"](seen, flags, mode, **_fd(dir_fd if seen is path else None))
        return opened

    def mkdir(self, path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        """As `os.mkdir`."""
        real = self.real(path, dir_fd)
        if real is None or self.is_own(real):
            self._os["mkdir"](path, mode, **_fd(dir_fd))
            return
        if self.visible(path, dir_fd):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        self._make_parents(os.path.dirname(real), path)
        self._os["mkdir"](self.copy_of(real), mode)
        # What was in a removed directory of this name stays removed.
        if real in self._removed:
            self._removed.discard(real)
            self._removed.update(os.path.join(real, name) for name in self._listed(real))

    def _listed(self, real: str) -> list[str]:
        try:
            return list(self._os["listdir"](real))
        except OSError:
            return []

    def _remove(self, name: str, path: Any, dir_fd: int | None) -> None:
        real = self.real(path, dir_fd)
        if real is None or self.is_own(real):
            self._os[name](path, **_fd(dir_fd))
            return
        if not self.visible(path, dir_fd):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if name == "rmdir":
            if self.listdir(real):
                raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        elif os.path.isdir(real) and not os.path.islink(real):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if self.has_copy(real):
            self._os[name](self.copy_of(real))
        if self._exists(real):
            self._removed.add(real)

    def remove(self, path: Any, *, dir_fd: int | None = None) -> None:
        """As `os.remove`."""
        self._remove("remove", path, dir_fd)

    def rmdir(self, path: Any, *, dir_fd: int | None = None) -> None:
        """As `os.rmdir`."""
        self._remove("rmdir", path, dir_fd)

    def _move(self, name: str, source: Any, target: Any, src_dir_fd: int | None, dst_dir_fd: int | None) -> None:
        real = self.real(source, src_dir_fd)
        real_target = self.real(target, dst_dir_fd)
        if real is None or real_target is None or (self.is_own(real) and self.is_own(real_target)):
            self._os[name](source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
            return
        seen = self.seen(source, src_dir_fd)
        seen = real if seen is source else seen
        to = self.for_writing(target, keep=False, dir_fd=dst_dir_fd)
        to = real_target if to is target else to
        if seen == self.copy_of(real) or self.is_own(real):
            self._os[name](seen, to)
        elif os.path.isdir(seen):
            shutil.copytree(seen, to, dirs_exist_ok=True)
        else:
            with self._open(seen, "rb") as file, self._open(to, "wb") as copy:
                shutil.copyfileobj(file, copy)
        self._removed.discard(real_target)
        if not self.is_own(real) and self._exists(real):
            self._removed.add(real)

    def rename(self, src: Any, dst: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None) -> None:
        """As `os.rename`."""
        self._move("rename", src, dst, src_dir_fd, dst_dir_fd)

    def replace(self, src: Any, dst: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None) -> None:
        """As `os.replace`."""
        self._move("replace", src, dst, src_dir_fd, dst_dir_fd)

    def link(self, src: Any, dst: Any, **kwargs: Any) -> None:
        """As `os.link`."""
        self._os["link"](self.for_writing(src, keep=True), self.for_writing(dst, keep=False), **kwargs)

    def symlink(self, src: Any, dst: Any, target_is_directory: bool = False, *, dir_fd: int | None = None) -> None:
        """As `os.symlink`."""
        self._folders.clear()
        if os.path.isabs(os.fsdecode(src)):
            src = self.seen(src)
        self._os["symlink"](src, self.for_writing(dst, keep=False, dir_fd=dir_fd), target_is_directory)

    def stat(self, path: Any, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> os.stat_result:
        """As `os.stat`."""
        seen = self.seen(path, dir_fd)
        found: os.stat_result = self._os["stat"](
            seen, dir_fd=dir_fd if seen is path else None, follow_symlinks=follow_symlinks
        )
        return found

    def lstat(self, path: Any, *, dir_fd: int | None = None) -> os.stat_result:
        """As `os.lstat`."""
        return self.stat(path, dir_fd=dir_fd, follow_symlinks=False)

    def access(self, path: Any, mode: int, **kwargs: Any) -> bool:
        """As `os.access`. Everything may be written: as a copy."""
        try:
            seen = self.seen(path, kwargs.get("dir_fd"))
        except OSError:
            return False
        if seen is not path:
            kwargs.pop("dir_fd", None)
        return bool(self._os["access"](seen, mode, **kwargs))

    def listdir(self, path: Any = ".") -> list[Any]:
        """As `os.listdir`."""
        real = self.real(os.readlink(f"/proc/self/fd/{path}") if isinstance(path, int) else path)
        if real is None or self.is_own(real):
            return list(self._os["listdir"](path))
        real = self._realpath(real)
        copy = self.copy_of(real)
        has_copy = self._exists(copy)
        if not has_copy and not self._removed:
            return list(self._os["listdir"](path))
        names: dict[str, None] = {}
        if self._exists(real) and not self.is_removed(real):
            for name in self._os["listdir"](real):
                if os.path.join(real, name) not in self._removed:
                    names[name] = None
        elif not has_copy:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if has_copy:
            names.update(dict.fromkeys(self._os["listdir"](copy)))
        return [os.fsencode(name) for name in names] if isinstance(path, bytes) else list(names)

    def scandir(self, path: Any = ".") -> Any:
        """As `os.scandir`."""
        real = self.real(os.readlink(f"/proc/self/fd/{path}") if isinstance(path, int) else path)
        if real is None or self.is_own(real):
            return self._os["scandir"](path)
        real = self._realpath(real)
        copy = self.copy_of(real)
        has_copy = self._exists(copy)
        if not has_copy and not self._removed:
            return self._os["scandir"](path)
        return _Scan(self._entries(path, real, copy if has_copy else None))

    def _entries(self, path: Any, real: str, copy: str | None) -> Iterator[Any]:
        taken: set[str] = set()
        if copy is not None:
            with self._os["scandir"](copy) as entries:
                for entry in entries:
                    taken.add(entry.name)
                    yield entry
        if self._exists(real) and not self.is_removed(real):
            with self._os["scandir"](path) as entries:
                for entry in entries:
                    if entry.name not in taken and os.path.join(real, os.fsdecode(entry.name)) not in self._removed:
                        yield entry

    def chmod(self, path: Any, mode: int, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> None:
        """As `os.chmod`."""
        self._os["chmod"](self.for_writing(path, keep=True, dir_fd=dir_fd), mode, follow_symlinks=follow_symlinks)

    def utime(self, path: Any, *args: Any, dir_fd: int | None = None, **kwargs: Any) -> None:
        """As `os.utime`."""
        self._os["utime"](self.for_writing(path, keep=True, dir_fd=dir_fd), *args, **kwargs)

    def truncate(self, path: Any, length: int) -> None:
        """As `os.truncate`."""
        self._os["truncate"](self.for_writing(path, keep=True), length)


_REPLACED = (
    "open", "mkdir", "remove", "rmdir", "rename", "replace", "link", "symlink", "stat", "lstat", "access", "listdir",
    "scandir", "chmod", "utime", "truncate",
)  # fmt: skip


class _Scan:
    """What `os.scandir` returns: an iterator that can be closed."""

    def __init__(self, entries: Iterator[Any]) -> None:
        self._entries = entries

    def __iter__(self) -> _Scan:
        return self

    def __next__(self) -> Any:
        return next(self._entries)

    def __enter__(self) -> _Scan:
        return self

    def __exit__(self, *why: object) -> None:
        self.close()

    def close(self) -> None:
        """End."""
        close = getattr(self._entries, "close", None)
        if close is not None:
            close()


def _function(original: Any, method: Callable[..., Any]) -> Any:
    @functools.wraps(original)
    def replacement(*args: Any, **kwargs: Any) -> Any:
        return method(*args, **kwargs)

    return replacement


def _fd(dir_fd: int | None) -> dict[str, int]:
    return {} if dir_fd is None else {"dir_fd": dir_fd}
