"""Repeats what a tester's campaign broke, each in a process of its own, and prints what it takes and says today.

    python -m tests.hostile.reproductions

A line for each: seconds of the processor, MB beyond the start, and the outcome. README.md says what each was before,
and which test holds it.
"""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
import os
import resource
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from hostile.bombs import profiles
from hostile.outcome import small_profiles
from support import all_answers, hostile_traces
from support.hostile_names import STEERS, hostile_profile
from support.messages import pb
from support.stored_profiles import varint

from tb_dlprof_plugin.model.profile import SCHEMA_VERSION
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store import run_files
from tb_dlprof_plugin.store.codec import ProfileError, decode, encode
from tb_dlprof_plugin.web import trace_files
from tb_dlprof_plugin.web.errors import RequestError
from tb_dlprof_plugin.web.loader_names import unreadable_name

Event = dict[str, Any]


def run_lengths(folder: Path) -> str:
    """A blob of 34 bytes that says one thread has 10**9 calls."""
    return _read(dict(profiles(1000))["run length"])


def packed_zeros(folder: Path) -> str:
    """200 kB that become 200 MB of zeros in a column of the launches."""
    count = 200_000_000
    column = b"\x0a" + varint(count)
    launches = next(kind.number for kind in pb.Profile.DESCRIPTOR.fields if kind.name == "launches")
    start = pb.Profile(schema_version=SCHEMA_VERSION, strings=[""]).SerializeToString()
    return _read(_zeros(start + varint(launches << 3 | 2) + varint(len(column) + count) + column, count))


def gzip_bomb(folder: Path) -> str:
    """1 MB of gzip that becomes 1 GB."""
    return _read(_zeros(b"", 1_000_000_000))


def indices(folder: Path) -> str:
    """A profile whose launches name a kernel that there is not."""
    profile = small_profiles()[0]
    launches = dataclasses.replace(profile.launches, kernel=np.full_like(profile.launches.kernel, 10**6))
    return _read(encode(dataclasses.replace(profile, launches=launches)))


def input_dims(folder: Path) -> str:
    """``"Input Dims": -0.5`` on one event."""
    return _shown(folder, lambda events: _first(events, "Input Dims").update({"Input Dims": -0.5}))


def input_types(folder: Path) -> str:
    """``"Input type"`` as integers."""
    return _shown(folder, lambda events: _first(events, "Input type").update({"Input type": [7, 7]}))


def kernels_alone(folder: Path) -> str:
    """Kernels without any call of the CPU."""

    def change(events: list[Event]) -> None:
        events[:] = [event for event in events if event.get("cat") == "kernel"]

    return _shown(folder, change)


def overlapping(folder: Path) -> str:
    """Every third event lasts twice as long, so that siblings overlap."""
    return _longer(folder, 1.9)


def for_years(folder: Path) -> str:
    """Every third event lasts 10**9 times as long."""
    return _longer(folder, 1e9)


def names(folder: Path) -> str:
    """Names with escapes, in what all commands print."""
    view = ProfileView(hostile_profile(small_profiles()[0], every=True))
    path = folder / "trace.json"
    path.write_text("[]")
    return _measured(lambda: _printed(view, path))


def _printed(view: ProfileView, path: Path) -> str:
    said = [answer() for _, answer in all_answers.commands(view, path)]
    return f"{len(said)} outputs, {sum(len(STEERS.findall(text)) for text in said)} characters that steer a terminal"


def pipe(folder: Path) -> str:
    """A pipe in the place of a trace."""
    path = folder / "w.1.pt.trace.json"
    path.write_bytes(b"{}")
    found = trace_files.traces_in(folder)
    path.unlink()
    os.mkfifo(path)
    run_files.traces_in = lambda _: found
    return _measured(lambda: _piece(folder, found[0].name))


def _piece(folder: Path, name: str) -> str:
    try:
        return str(trace_files.piece_of(folder, name, 0, None))
    except RequestError as error:
        return str(error)


def run_names(folder: Path) -> str:
    """The name of a run that TensorBoard's fast loader cannot read."""
    return _measured(lambda: unreadable_name('a"b'))


ALL: tuple[Callable[[Path], str], ...] = (
    run_lengths, packed_zeros, gzip_bomb, indices, input_dims, input_types, kernels_alone, overlapping, for_years,
    names, run_names, pipe,
)  # fmt: skip


def _zeros(begin: bytes, count: int) -> bytes:
    """What gzip makes of so many zeros behind a beginning, without holding them."""
    pack, blob = zlib.compressobj(9, wbits=31), io.BytesIO()
    blob.write(pack.compress(begin))
    for _ in range(count // 1_000_000):
        blob.write(pack.compress(bytes(1_000_000)))
    blob.write(pack.flush())
    return blob.getvalue()


def _read(blob: bytes) -> str:
    """In a copy of the process, so that making the blob does not count."""
    return _measured(lambda: _decoded(blob))


def _decoded(blob: bytes) -> str:
    try:
        decode(blob)
    except ProfileError as error:
        return f"{len(blob):,} bytes: {error}"
    return f"{len(blob):,} bytes: decoded"


def _first(events: list[Event], key: str) -> Event:
    found: Event = next(event["args"] for event in events if key in event.get("args", {}))
    return found


def _longer(folder: Path, factor: float) -> str:
    def change(events: list[Event]) -> None:
        for event in events[::3]:
            if isinstance(event.get("dur"), (int, float)):
                event["dur"] *= factor

    return _shown(folder, change)


def _shown(folder: Path, change: Callable[[list[Event]], Any]) -> str:
    """Everything that can be asked about a recorded training after a change of its events."""
    file = Path(__file__).parents[1] / "traces" / "cuda_training.pt.trace.json.gz"
    document = json.loads(gzip.decompress(file.read_bytes()))
    change(document["traceEvents"])
    path = folder / "trace.json"
    path.write_text(json.dumps(document))
    hostile_traces.sound_view()
    return _measured(lambda: _asked(path))


def _asked(path: Path) -> str:
    checked = hostile_traces.check(path)
    if isinstance(checked, str):
        return checked
    asked: list[str] = []
    faults = list(hostile_traces.faults_of(ProfileView(checked), path, True, asked.append))
    return f"{len(asked)} answers, {len(faults)} faults {faults[:1] or ''}"


def _measured(work: Callable[[], str]) -> str:
    before, begin = _most_kb(), time.process_time()
    said = work()
    return f"{time.process_time() - begin:.2f} s\t{(_most_kb() - before) / 1024:.0f} MB\t{said}"


def _most_kb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    """Entry point of the command."""
    for reproduction in ALL:
        if not (child := os.fork()):
            with tempfile.TemporaryDirectory() as folder:
                said = reproduction(Path(folder))
                print(f"{reproduction.__name__}\t{said}".replace(folder, ""), flush=True)
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
