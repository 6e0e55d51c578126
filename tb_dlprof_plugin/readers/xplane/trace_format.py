"""The format of TensorFlow's, Keras' and JAX' profiles: XPlane files, plain or gzip."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tb_dlprof_plugin.model.timeline import Timeline
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.log_directory import ENDINGS, in_session
from tb_dlprof_plugin.readers.options import ReadOptions
from tb_dlprof_plugin.readers.xplane.space import looks_like_space

NAME = "xplane"
TITLE = "a profile of TensorFlow, Keras or JAX (*.xplane.pb)"

_HEAD_BYTES = 65536


def recognises(path: Path) -> bool:
    """Whether a file begins like an XSpace.

    Raises:
        TraceError: the file cannot be opened or read.
    """
    try:
        with path.open("rb") as file:
            return looks_like_space(file.read(_HEAD_BYTES))
    except OSError as error:
        raise TraceError(f"{path} cannot be read ({error.strerror}); check the path.") from None


def read(path: Path, options: ReadOptions, progress: Callable[[float], None] | None = None) -> list[Timeline]:
    """A Timeline for each GPU that worked, else one for the host.

    Hosts of a session are ranks of one run: the GPUs of the first host, by name, come first. All are taken to have as
    many GPUs as this one.
    """
    from tb_dlprof_plugin.readers.xplane.reader import read_xplane

    return read_xplane(path, progress, _place_among_hosts(path))


def run_name(path: Path) -> str:
    """The session's time for a file in a log directory, else the file's name without its ending."""
    return path.resolve().parent.name if in_session(path) else _stem(path)


def files_below(folder: Path) -> set[Path]:
    """XPlane files in a directory and those below it."""
    return {file for ending in ENDINGS for file in folder.rglob(f"*{ending}") if file.is_file() and file.name[0] != "."}


def _stem(path: Path) -> str:
    for ending in ENDINGS[::-1]:
        if path.name.endswith(ending):
            return path.name.removesuffix(ending) or path.name
    return path.name


def _place_among_hosts(path: Path) -> int | None:
    """How many hosts of the session come before this one; None where there is no other."""
    if not in_session(path):
        return None
    hosts = sorted(file.name for ending in ENDINGS for file in path.parent.glob(f"*{ending}"))
    return hosts.index(path.name) if len(hosts) > 1 and path.name in hosts else None
