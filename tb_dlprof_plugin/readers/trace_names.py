"""How the trace files of a run are named, and which of them are not as the profiler wrote them.

torch's handler and ours name a trace ``<worker>.<time>.pt.trace.json[.gz]``. Where a rewritten copy for another viewer
takes that name (`tb_dlprof_plugin.interop`), the trace that torch wrote is in the subdirectory `ORIGINALS`, as
``<worker>.<time>.trace.json[.gz]``: a directory of its own, because HTA reads every file of a directory.
"""

from __future__ import annotations

import gzip
import re
import zlib
from pathlib import Path

ORIGINALS = "kineto"
"""The directory of what torch wrote, where the run also holds a copy."""
COPY_MARK = "tb_dlprof_copy_for"
"""The first key of a copy: a file with it is not read as a recording."""
TRACE_ENDINGS = (".pt.trace.json", ".pt.trace.json.gz")
RECORDING_ENDINGS = (".json", ".json.gz", ".sqlite", ".sqlite.gz", ".db", ".nsys-rep", ".xplane.pb", ".xplane.pb.gz")
"""Of recordings in a directory; a file that is named, or that a pattern matches, may have any name."""
DUMP_NAME = re.compile(r"(?:_dump_|rank_?|trace_)(?P<rank>\d{1,9})(?:\.json|\.pkl|\.pickle)?\Z")
"""Of a dump of PyTorch's flight recorder."""
INSPECTOR_NAME = re.compile(r"(?P<host>[^/]+)-pid(?P<process>\d{1,10})\.(?:log|jsonl)(?:\.gz)?\Z")
"""Of a file of NCCL Inspector."""
ORIGINAL_ENDINGS = (".trace.json", ".trace.json.gz")

_MARK_WITHIN_BYTES = 256
_ENDING = re.compile(r"(\.pt)?(\.trace)?(\.json)?(\.gz)?$")


_RANK = re.compile(r"(?:^|[^a-z])rank[-_.]?(\d{1,7})(?!\d)", re.IGNORECASE)
_RANK_FOLDER = re.compile(r"rank[-_.]?(\d{1,7})", re.IGNORECASE)
_RANK_AND_NODE = re.compile(
    r"(?:(?<![a-z])(?:global|local)[-_.]?)?(?<![a-z])(?:rank|node)[-_.]?\d{1,7}(?!\d)", re.IGNORECASE
)
_TIME = re.compile(r"\.\d{10,}$")
_KINDS = ("trace", "traces", "profile", "profiler", "kineto")
_HOST = re.compile(r"^(?:libkineto_trace_)?(?P<host>[A-Za-z][\w.-]*?)_\d{1,10}(?:\.\d+)*$")

_NO_HOSTS = ("worker", "gpu", "trace", "process", "node", "iteration", "epoch", "step")
"""What people number in the same way."""


def rank_of_name(name: str) -> int | None:
    """The rank in a trace's name, such as "rank3_trace.json.gz" of torchtitan; None where it has none."""
    found = _RANK.search(stem_of(name))
    return int(found[1]) if found else None


def rank_of_path(path: str) -> int | None:
    """The rank in the name of a trace at an address, or else in that of its directory, "rank3/trace.json.gz"."""
    named = rank_of_name(path)
    if named is not None:
        return named
    found = _RANK_FOLDER.fullmatch(path.replace("\\", "/").rpartition("/")[0].rpartition("/")[2])
    return int(found[1]) if found else None


def run_folder(folder: Path) -> Path:
    """The directory of a run whose recordings are in this one: that above it where each rank has a directory."""
    return folder.parent if _RANK_FOLDER.fullmatch(folder.name) else folder


def without_rank(stem: str) -> str:
    """What a trace's name says besides its rank, node and time: "resnet" of "resnet_rank3.1700000000000", "" of
    "rank3_trace"; the name itself where it has no rank."""
    if not _RANK.search(stem):
        return stem
    left = _RANK_AND_NODE.sub("", _TIME.sub("", stem)).strip("_.- ")
    return "" if left.lower() in _KINDS else left


def host_of_name(name: str) -> str:
    """The host in a trace's name: "node7" of torch's "node7_4711.1700000000000.pt.trace.json" and of dynolog's
    "libkineto_trace_node7_4711.json"; "" where it has none."""
    found = _HOST.match(stem_of(name))
    return found["host"] if found and rank_of_name(name) is None and found["host"].lower() not in _NO_HOSTS else ""


def stem_of(name: str) -> str:
    """A trace's name without directory and endings: "worker0.123" of "kineto/worker0.123.trace.json.gz"."""
    name = name.rpartition("/")[2]
    return _ENDING.sub("", name) or name


def is_copy(path: Path) -> bool:
    """Whether a file is a copy for another viewer; False for what cannot be read."""
    try:
        with gzip.open(path) as file:
            return path.suffix == ".gz" and COPY_MARK.encode() in file.read(_MARK_WITHIN_BYTES)
    except (OSError, EOFError, zlib.error):
        return False
