"""Reads the bombs of the files named as arguments, each in a child of its own, and prints what it took.

One line for each: MB of memory at the peak, seconds of the processor, and what came out: "read", "refused" where
another blob is read instead, or the sentence of the error.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).parents[1]))

from hostile.bombs import Bomb, stored
from support.all_answers import REF

from tb_dlprof_plugin.fleet.answers.job_of import job_of
from tb_dlprof_plugin.fleet.stored_facts import facts_of_job
from tb_dlprof_plugin.metrics.run_figures import run_figures
from tb_dlprof_plugin.model.trial_result import decode_trial
from tb_dlprof_plugin.pages.distributed import distributed_page
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.choice import StoredBlob
from tb_dlprof_plugin.store.codec import ProfileError, decode
from tb_dlprof_plugin.store.event_file import read_blobs
from tb_dlprof_plugin.store.header import parse_header
from tb_dlprof_plugin.store.reclassify import reclassified
from tb_dlprof_plugin.store.run_ref import RunRef

_MOST_BYTES = 8 << 30
"""Of address space."""
_LONGEST_S = 60
"""Then it is ended."""


@dataclass(frozen=True, slots=True)
class _Facts(StoredBlob):
    facts: bytes

    def read_facts(self) -> bytes:
        return self.facts

    def read(self) -> bytes:
        raise ProfileError("its profile is not stored")


def profile(blobs: list[bytes]) -> str:
    """Reads a profile, and computes what a table shows of it."""
    view = ProfileView(reclassified(decode(blobs[0])))
    run_figures(view, view.selection())
    return "read"


def facts(blobs: list[bytes]) -> str:
    """Reads the ranks of a job, a sound one too, and makes the page."""
    sound = stored(rank=len(blobs), world=len(blobs) + 1)
    found = facts_of_job(
        (_Facts(RunRef("run", "s", rank, 0), rank, data) for rank, data in enumerate([*blobs, sound])), len(blobs) + 1
    )
    assert any(one.rank == len(blobs) for one in found.facts), "the sound rank is lost"
    msgspec.json.encode(distributed_page(job_of(found.facts, found.unreadable, found.numbers), REF))
    return found.unreadable[0] if found.unreadable else "read"


def trial(blobs: list[bytes]) -> str:
    """Reads the result of a trial. One that is refused is as if there was none."""
    return "refused" if decode_trial(blobs[0]) is None else "read"


def header(blobs: list[bytes]) -> str:
    """Reads the header of a run."""
    return "refused" if parse_header(blobs[0]) is None else "read"


def file(blobs: list[bytes]) -> str:
    """Lists the profiles of an event file."""
    with tempfile.NamedTemporaryFile() as written:
        Path(written.name).write_bytes(blobs[0])
        list(read_blobs(written.name, "run"))
        return "read"


KINDS: dict[str, Callable[[list[bytes]], str]] = {one.__name__: one for one in (profile, facts, trial, header, file)}


def measure(bomb: Bomb) -> None:
    """Reads one and prints the line."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    signal.alarm(_LONGEST_S)
    before, begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    try:
        result = KINDS[bomb.kind](bomb.blobs)
    except Exception as error:
        result = f"{'' if isinstance(error, ProfileError) else type(error).__name__ + ': '}{error}"
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"{used / 1024:.0f}\t{time.process_time() - begin:.2f}\t{result}", flush=True)


if __name__ == "__main__":
    # What is imported with the first question does not count.
    KINDS["facts"]([stored()])
    for name in sys.argv[1:]:
        bomb = msgspec.msgpack.decode(Path(name).read_bytes(), type=Bomb)
        if not (child := os.fork()):
            measure(bomb)
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            print("-1\t-1\tkilled", flush=True)
