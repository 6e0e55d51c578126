"""Files of profilers that no format reads: what each is, and what to pass in its place.

A new one is a row of `KNOWN`. Nothing is read but the first bytes.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.json_file import head_of
from tb_dlprof_plugin.readers.log_directory import ENDINGS as XPLANE_ENDINGS
from tb_dlprof_plugin.readers.sqlite_file import HEADER as SQLITE

_HEAD_BYTES = 2**18
"""The definitions of a database's tables lie in its first pages."""
_MOST_FILES = 1000
"""Of a directory that is searched."""


@dataclass(frozen=True, slots=True)
class KnownFormat:
    """A format that is known, but not read.

    Attributes:
        what: what a file of it is, as part of a sentence.
        instead: what to do about a file.
        recognises: whether a file is one, by its path and its first bytes, unpacked.
    """

    what: str
    instead: Callable[[Path], str]
    recognises: Callable[[Path, bytes], bool]


def why_not_read(path: Path) -> str | None:
    """A sentence that says what a file is and what to do; None for a file that no row of `KNOWN` recognises.

    Raises:
        TraceError: the file cannot be opened or read.
    """
    known = known_format(path)
    if known is None:
        return None
    return f"{path} is {known.what}, which tb-dlprof does not read; {known.instead(path)}."


def known_format(path: Path) -> KnownFormat | None:
    """The row of `KNOWN` that recognises a file.

    Raises:
        TraceError: the file cannot be opened or read.
    """
    head = head_of(path, _HEAD_BYTES)
    return next((known for known in KNOWN if known.recognises(path, head)), None)


def known_below(files: Iterable[Path]) -> dict[KnownFormat, list[Path]]:
    """Those files that are of a known format, by format; what cannot be read is passed over."""
    found: dict[KnownFormat, list[Path]] = {}
    for file in islice(files, _MOST_FILES):
        with contextlib.suppress(TraceError):
            known = known_format(file) if file.is_file() else None
            if known is not None:
                found.setdefault(known, []).append(file)
    return found


_SNAPSHOT = re.compile(rb"device_traces|total_size")
_PERFETTO_ENDINGS = (".pftrace", ".perfetto-trace", ".perfetto")
_TABLE = re.compile(rb"(?m)^ *Name  +(?=.*Self CPU(?: total)?(?: %|  )).*(?:# of|Number of) Calls")
_NSYS_COLUMNS = re.compile(
    rb'"?(?:Time ?\(%\)"?,"?Total Time ?\(\w+\)|Start ?\(\w+\)"?,"?(?:Duration|End) ?\(\w+\)|NVTX Range"?,|'
    rb'Total ?\(\w+\)"?,"?Count)'
)
_FIRST_LINES = 20
"""Text may stand in front of the columns."""
_RPD = re.compile(rb"CREATE (?:TABLE|VIEW) (?:IF NOT EXISTS )?[\"'`\[]?rocpd_")
_DLDB = re.compile(rb"CREATE TABLE (?:IF NOT EXISTS )?[\"'`\[]?read_only_(?:ops|op_instances|kernels)\b")
_EXECUTION_TRACE = re.compile(rb'\s*\{(?=.{0,2000}"nodes"\s*:)[^{}\[\]]*"schema"\s*:\s*"[\d.]+', re.DOTALL)
_VIEWERS_TRACE = re.compile(rb'\s*\{\s*"displayTimeUnit"\s*:\s*"ns"\s*,\s*"metadata"\s*:\s*\{\s*"highres-ticks"')
_ZIP = re.compile(rb"PK(?:\x03\x04|\x05\x06)")
_TAR = re.compile(rb"(?s).{257}ustar")


def _begins(pattern: re.Pattern[bytes]) -> Callable[[Path, bytes], bool]:
    return lambda path, head: pattern.match(head) is not None


def _is_database(defines: re.Pattern[bytes]) -> Callable[[Path, bytes], bool]:
    return lambda path, head: head.startswith(SQLITE) and defines.search(head) is not None


def _is_snapshot(path: Path, head: bytes) -> bool:
    return head.startswith(b"\x80") and b"segments" in head[:64] and _SNAPSHOT.search(head) is not None


def _is_perfetto(path: Path, head: bytes) -> bool:
    # By name: the first bytes of a packet are as those of an XPlane file.
    return path.name.removesuffix(".gz").endswith(_PERFETTO_ENDINGS) and head.startswith(b"\n")


def _is_table(path: Path, head: bytes) -> bool:
    return _TABLE.search(head[:65536]) is not None


def _is_nsys_csv(path: Path, head: bytes) -> bool:
    return any(_NSYS_COLUMNS.match(line) for line in head[:4096].splitlines()[:_FIRST_LINES])


def _unpack(path: Path) -> str:
    return "unpack it, and pass the recordings in it"


def _xplane_next_to(path: Path) -> str:
    """The XPlane file of the host that a trace.json.gz is of, else any of the session."""
    host = re.sub(r"\.trace\.json(\.gz)?\Z", "", path.name)
    own = [path.with_name(host + ending) for ending in XPLANE_ENDINGS]
    others = sorted(one for ending in XPLANE_ENDINGS for one in path.parent.glob(f"*{ending}"))
    recording = next((one for one in (*own, *others) if one.is_file()), None)
    return f"pass {recording} next to it, which holds more" if recording else "pass the *.xplane.pb of the same session"


def _nsys_next_to(path: Path) -> str:
    names = ("nsys_profile.sqlite", "nsys_profile.nsys-rep", "nsys_profile.qdrep")
    recording = next((one for name in names if (one := path.with_name(name)).is_file()), None)
    return f"pass {recording} next to it" if recording else "pass the nsys_profile.sqlite that DLProf wrote next to it"


KNOWN: tuple[KnownFormat, ...] = (
    KnownFormat("a zip archive", _unpack, _begins(_ZIP)),
    KnownFormat("a tar archive", _unpack, _begins(_TAR)),
    KnownFormat(
        "a snapshot of PyTorch's CUDA memory (torch.cuda.memory._dump_snapshot)",
        lambda path: f"read it with `tb-dlprof oom {path}`, or record with torch.profiler and profile_memory=True",
        _is_snapshot,
    ),
    KnownFormat(
        "a Perfetto trace in protobuf",
        lambda path: "open it on https://ui.perfetto.dev, or pass the JSON that torch.profiler exports",
        _is_perfetto,
    ),
    KnownFormat(
        "the text of key_averages().table() of torch.profiler",
        lambda path: "pass the trace, which prof.export_chrome_trace('NAME.pt.trace.json') writes",
        _is_table,
    ),
    KnownFormat(
        "a database of ROCm's tracers (rocmProfileData, rocprofv3)",
        lambda path: "record with torch.profiler, which records AMD GPUs, too",
        _is_database(_RPD),
    ),
    KnownFormat(
        "an execution trace of PyTorch (ExecutionTraceObserver, Chakra)",
        lambda path: "it has no times: pass the trace that torch.profiler wrote of the same steps, *.pt.trace.json",
        _begins(_EXECUTION_TRACE),
    ),
    KnownFormat(
        "a table of nsys stats as CSV",
        lambda path: "pass the report that it was made of, *.nsys-rep or *.sqlite",
        _is_nsys_csv,
    ),
    KnownFormat("DLProf's database (dlprof_dldb.sqlite)", _nsys_next_to, _is_database(_DLDB)),
    KnownFormat(
        "the copy for trace viewers of a profile of JAX or TensorFlow", _xplane_next_to, _begins(_VIEWERS_TRACE)
    ),
)
"""Asked in this order."""
