"""Files by address: paths of this machine, and what fsspec reads and writes: s3://, gs://, az://, hdfs://, https:// ...

Remote addresses need the extra ``remote``, and their file system's package (``gcsfs``, ``adlfs``). Who may read what is
decided where the code runs, by the environment, the machine's role or fsspec's configuration: no credentials are passed
around here.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tb_dlprof_plugin.model.whole_file import whole_file

_BLOCK_BYTES = 16 << 20
"""Of a download: gzip allows no random access, so a file is read from its start to its end."""
_WHOLE_OR_NOTHING = {"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "memory"}
"""Stores in which an object appears when all of it is written."""
_FOLDER = re.compile(r"\w[\w.-]*")
"""Names that a file system takes."""
_ONE_SLASH = re.compile(r"^([a-z][a-z0-9+.-]+):/+(?=[^/])")
_PACKAGES = {
    "s3": "s3fs",
    "s3a": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "az": "adlfs",
    "abfs": "adlfs",
    "hdfs": "pyarrow",
}


class AddressError(Exception):
    """An address that cannot be used; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A file: ``stamp`` changes when it is written over, ``changed_ns`` is when that was (unix; 0 where not known)."""

    address: str
    size: int
    stamp: str
    changed_ns: int


def is_remote(address: str) -> bool:
    """Whether an address is no path of this machine."""
    return scheme_of(address) not in ("", "file", "local")


def scheme_of(address: str) -> str:
    """Such as "s3"; "" of a path. A letter alone is a drive of Windows."""
    found = re.match(r"^([a-z][a-z0-9+.-]+):/", address)
    return found[1] if found else ""


def with_slashes(address: str) -> str:
    """An address as it was, where a path type has made its two slashes one."""
    return _ONE_SLASH.sub(r"\1://", address) if is_remote(address) else address


def package_for(address: str) -> list[str]:
    """What must be installed to read an address."""
    if not is_remote(address):
        return []
    return ["fsspec", *filter(None, [_PACKAGES.get(scheme_of(address))])]


def join(folder: str, *parts: str) -> str:
    """An address below another."""
    if not is_remote(folder):
        return os.path.join(folder, *parts)
    return "/".join([folder.rstrip("/"), *parts])


def is_pattern(address: str) -> bool:
    """Whether an address has wildcards and names no file itself."""
    return glob.has_magic(address) and (is_remote(address) or not os.path.exists(address))


def listing(address: str) -> list[Listed]:
    """The files that an address names: itself, all below a directory, or those that match a pattern. Sorted.

    One request lists them, whatever their number.

    Raises:
        AddressError: it cannot be listed.
    """
    if not is_remote(address):
        return _local(address)
    files, path = _file_system(address)
    try:
        list_them = files.glob if glob.has_magic(path) else files.find
        found = list_them(path, detail=True)
    except FileNotFoundError:
        return []
    except Exception as error:
        raise AddressError(_cannot_be_read(address, error)) from None
    listed = [_listed(files, name, info) for name, info in found.items() if info.get("type") != "directory"]
    return sorted(listed, key=lambda one: one.address)


@contextlib.contextmanager
def local_copy(address: str) -> Iterator[Path]:
    """A file of this machine with what the address holds, under its name and its directory's, while the block runs.

    Readers look at a file more than once, and databases are opened at any place.

    Raises:
        AddressError: it cannot be read.
    """
    if not is_remote(address):
        yield Path(address)
        return
    with tempfile.TemporaryDirectory(prefix="tb_dlprof_") as folder:
        *_, above, name = ("", *address.rstrip("/").split("/"))
        path = Path(folder, above if _FOLDER.fullmatch(above) else "", name or "file")
        path.parent.mkdir(exist_ok=True)
        try:
            files, remote = _file_system(address)
            opened = files.open(remote, "rb", block_size=_BLOCK_BYTES, cache_type="readahead")
            with opened as source, path.open("wb") as copy:
                shutil.copyfileobj(source, copy, _BLOCK_BYTES)
        except AddressError:
            raise
        except Exception as error:
            raise AddressError(_cannot_be_read(address, error)) from None
        yield path


def write(address: str, content: bytes) -> None:
    """Write a file whole, its directories made: no reader sees a part of it.

    Raises:
        AddressError: it cannot be written; nothing is left behind.
    """
    try:
        if not is_remote(address):
            Path(address).parent.mkdir(parents=True, exist_ok=True)
            with whole_file(Path(address)) as file:
                file.write(content)
            return
        temporary = join(address.rpartition("/")[0], f".{secrets.token_hex(8)}.tb_dlprof.tmp")
        files, path = _file_system(address)
        if scheme_of(address) in _WHOLE_OR_NOTHING:
            files.pipe_file(path, content)
            return
        files.makedirs(files._parent(path), exist_ok=True)
        _, aside = _file_system(temporary)
        files.pipe_file(aside, content)
        files.mv(aside, path)
    except AddressError:
        raise
    except Exception as error:
        raise AddressError(f"{address} cannot be written ({_why(error)}); give another --logdir.") from None


def remove(address: str) -> None:
    """Remove a file if it is there.

    Raises:
        AddressError: it cannot be removed.
    """
    try:
        if not is_remote(address):
            Path(address).unlink(missing_ok=True)
            return
        files, path = _file_system(address)
        with contextlib.suppress(FileNotFoundError):
            files.rm_file(path)
    except AddressError:
        raise
    except Exception as error:
        raise AddressError(f"{address} cannot be removed ({_why(error)}).") from None


def fixed_part(address: str) -> str:
    """The directory above the first wildcard of a pattern; of what has none, itself."""
    parts = address.split("/")
    fixed = next((index for index, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    return "/".join(parts[:fixed]) or ("/" if address.startswith("/") else ".")


def _local(address: str) -> list[Listed]:
    path = Path(address)
    if glob.has_magic(address) and not path.exists():
        paths = [Path(found) for found in glob.glob(address, recursive=True)]
    elif path.is_dir():
        paths = list(path.rglob("*"))
    else:
        paths = [path]
    listed = []
    for one in sorted(found for found in paths if found.is_file()):
        status = one.stat()
        listed.append(Listed(str(one), status.st_size, str(status.st_mtime_ns), status.st_mtime_ns))
    return listed


def _listed(files: Any, name: str, info: dict[str, Any]) -> Listed:
    changed = info.get("LastModified") or info.get("last_modified") or info.get("updated") or info.get("mtime")
    if isinstance(changed, str):
        with contextlib.suppress(ValueError):
            changed = datetime.fromisoformat(changed.replace("Z", "+00:00"))
    if isinstance(changed, datetime):
        changed = changed.timestamp()
    changed_ns = round(changed * 1e9) if isinstance(changed, (int, float)) else 0
    stamp = str(info.get("ETag") or info.get("etag") or info.get("md5Hash") or changed_ns)
    return Listed(str(files.unstrip_protocol(name)), int(info.get("size") or 0), stamp, changed_ns)


def _file_system(address: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ModuleNotFoundError:
        raise AddressError(f"{address} is remote; run pip install fsspec s3fs to read and write such files.") from None
    try:
        # Listings are kept by fsspec for the process: files come and go while it runs.
        return url_to_fs(address, use_listings_cache=False)  # type: ignore[no-any-return]
    except (ImportError, ValueError) as error:
        raise AddressError(f"{address} cannot be used: {error}.") from None


def _cannot_be_read(address: str, error: BaseException) -> str:
    return f"{address} cannot be read ({_why(error)}); check the address and who may read it."


def _why(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return f"{type(error).__name__}: {error}".splitlines()[0][:300].rstrip(".: ")
