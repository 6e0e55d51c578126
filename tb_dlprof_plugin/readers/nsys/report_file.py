"""Converts a report (.nsys-rep, .qdrep) with the user's own nsys: only an nsys that is no older than the recorder can.

It writes into a temporary directory; the report stays as it is.
"""

from __future__ import annotations

import contextlib
import functools
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tb_dlprof_plugin.model.natural_order import natural_order
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.nsys.trace_format import UNFINISHED

_PLACES = (
    "/opt/nvidia/nsight-systems/*/bin/nsys", "/opt/nvidia/nsight-systems*/bin/nsys",
    "/opt/nvidia/nsight-systems*/*/target-linux-x64/nsys", "/usr/local/cuda*/bin/nsys",
    "/usr/lib/nsight-systems/bin/nsys", "/opt/nvidia/nsight-compute/*/host/target-linux-*/nsys",
)  # fmt: skip
"""Where installers put it, if it is not on PATH. The last are without an importer, but can record."""
_NEWER = re.compile(r"version \(?(\d[\d.]*\d)[^,]*, newer than your current version \(?(\d[\d.]*\d)")
PAYLOADS = "--include-blobs=true"
"""Payloads of NVTX ranges; nsys before 2023 has no such option, and names it where it does not know it."""
_LONGEST_S = 3600
_TOLD_CHARACTERS = 300


@functools.lru_cache(maxsize=1)
def find_nsys() -> str | None:
    """The user's nsys: that on PATH, else the newest in the usual places; None where there is none."""
    on_path = shutil.which("nsys")
    if on_path:
        return on_path
    for pattern in _PLACES:
        found = sorted(map(str, Path("/").glob(pattern.lstrip("/"))), key=natural_order)
        if found:
            return found[-1]
    return None


def export_command(nsys: str, report: Path, target: Path) -> list[str]:
    """The command that makes a database of a report. Its options are those that nsys has had since 2020, but the last,
    without which the database lacks what NCCL says of its calls."""
    return [*_plain_command(nsys, report, target)[:-1], PAYLOADS, str(report)]


def _plain_command(nsys: str, report: Path, target: Path) -> list[str]:
    return [nsys, "export", "--type", "sqlite", "--force-overwrite", "true", "--output", str(target), str(report)]


@contextlib.contextmanager
def exported(report: Path) -> Iterator[Path]:
    """The report as a database in a temporary directory.

    Raises:
        TraceError: there is no nsys, it is older than the report, or it fails; the message says what to run.
    """
    try:
        report.open("rb").close()
    except OSError as error:
        raise TraceError(f"{report} cannot be read ({error.strerror}).") from None
    wanted = _by_hand(report)
    if report.name.endswith(UNFINISHED):
        raise TraceError(f"{report} is an unfinished report; run QdstrmImporter on it, and then `{wanted}`.")
    nsys = find_nsys()
    if nsys is None:
        raise TraceError(
            f"{report} is a report of Nsight Systems, which only nsys can read, and there is none on PATH; run "
            f"`{wanted}` where nsys is installed and pass the .sqlite file."
        )
    with tempfile.TemporaryDirectory(prefix="tb_dlprof_") as folder:
        target = Path(folder) / "report.sqlite"
        said = _run(export_command(nsys, report, target), report, wanted)
        if not target.is_file() and PAYLOADS.partition("=")[0].strip("-") in said:
            said = _run(_plain_command(nsys, report, target), report, wanted)
        if not target.is_file():
            raise TraceError(_why_not(report, said, nsys, wanted))
        yield target


def _run(command: list[str], report: Path, wanted: str) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_LONGEST_S, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        raise TraceError(
            f"{report} cannot be converted: {command[0]} failed ({why}); run `{wanted}` yourself."
        ) from None
    return f"{done.stdout}\n{done.stderr}"


def _why_not(report: Path, said: str, nsys: str, wanted: str) -> str:
    newer = _NEWER.search(f"{said} ")
    if newer:
        return (
            f"{report} was recorded by Nsight Systems {newer[1]}, and {nsys} is {newer[2]}; run `{wanted}` with the "
            "nsys that recorded it, and pass the .sqlite file."
        )
    told = " ".join(said.split())[-_TOLD_CHARACTERS:]
    return (
        f"{report} cannot be converted by {nsys}, which says: {told or 'nothing'}. Run `{wanted}` with another version."
    )


def _by_hand(report: Path) -> str:
    target = report.name.removesuffix(report.suffix) + ".sqlite"
    return f"nsys export --type sqlite -o {shlex.quote(target)} {shlex.quote(str(report))}"
