"""Paths of this machine for what users name: of a remote address a copy of its event files, else of its recordings.

A copy lasts as long as the process. Asked again, only files that have changed since are fetched.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from tb_dlprof_plugin.model import addresses
from tb_dlprof_plugin.model.addresses import AddressError, Listed
from tb_dlprof_plugin.store.codec import ProfileError

_AT_ONCE = 16
"""Downloads: of small files most of the time is waiting for the store."""
_EVENT_FILE = re.compile(r"tfevents.*\.tb_dlprof$")

_making = threading.Lock()
_fetched: dict[Path, str] = {}
"""The copies, with the stamp of the file that each was made from."""


def path_here(source: str | os.PathLike[str]) -> Path:
    """A path with the same files as ``source``: itself, or the directory or file that a remote address was copied to.

    Of a remote directory with event files only these are copied, with dumps of the flight recorder and files of NCCL
    Inspector; of a pattern what it matches.

    Raises:
        ProfileError: the address cannot be read, or names nothing.
    """
    address = addresses.with_slashes(os.fspath(source))
    if not addresses.is_remote(address):
        return Path(source)
    try:
        found = addresses.listing(address)
        wanted = _wanted(address, found)
        if not wanted:
            raise ProfileError(f"{address} holds neither profiles nor traces.")
        place = _place(addresses.fixed_part(address))
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(_copy, wanted))
    except AddressError as error:
        raise ProfileError(str(error)) from None
    return place


def _wanted(address: str, found: Sequence[Listed]) -> list[Listed]:
    if addresses.is_pattern(address) or len(found) == 1:
        return list(found)
    from tb_dlprof_plugin.readers.trace_names import DUMP_NAME, INSPECTOR_NAME, RECORDING_ENDINGS

    dumps = [one for one in found if DUMP_NAME.search(one.address) or INSPECTOR_NAME.search(one.address)]
    ours = [one for one in found if _EVENT_FILE.search(one.address)]
    return [*(ours or [one for one in found if one.address.lower().endswith(RECORDING_ENDINGS)]), *dumps]


def _place(address: str) -> Path:
    """Where a copy lies: below the address's own directories, so that runs are named as they are there."""
    scheme = addresses.scheme_of(address)
    parts = [part for part in address.removeprefix(f"{scheme}:").split("/") if part not in ("", ".", "..")]
    return _folder().joinpath(scheme, *parts)


def _copy(one: Listed) -> Path:
    path, stamp = _place(one.address), f"{one.size} {one.stamp}"
    if _fetched.get(path) != stamp or not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with addresses.local_copy(one.address) as copy:
            shutil.move(copy, path)
        _fetched[path] = stamp
    return path


def _folder() -> Path:
    """Of this process; removed when it ends."""
    # A cached function runs twice where two threads are the first to call it.
    with _making:
        return _made_folder()


@cache
def _made_folder() -> Path:
    folder = tempfile.mkdtemp(prefix="tb_dlprof_remote_")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
