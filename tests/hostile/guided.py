"""Looks for hostile inputs with atheris, guided by the code they reach: of both decoders, traces and event files.

    python -m tests.hostile.guided traces --minutes 10 [--seed 1] [--found FOLDER]
    python -m tests.hostile.guided event-files --minutes 10

Our mutations (`support.broken_traces`, `hostile.event_files`) and libFuzzer's take turns: what theirs alone leave is
hardly ever JSON, or a message behind gzip and checksums, that can be read. An input that breaks something is written to
the folder, and the run ends; its smallest form gets a test. It needs an environment with atheris (README.md).
"""

from __future__ import annotations

import argparse
import random
import struct
import sys
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path

import atheris  # type: ignore[import-not-found,unused-ignore]
from google.protobuf.message import DecodeError

sys.path.insert(0, str(Path(__file__).parents[1]))

_DECODERS = [
    "tb_dlprof_plugin.readers", "tb_dlprof_plugin.store", "tb_dlprof_plugin.analysis", "tb_dlprof_plugin.model",
    "tb_dlprof_plugin.fleet.facts_codec",
]  # fmt: skip
with atheris.instrument_imports(include=_DECODERS):
    from hostile import event_files, outcome
    from support import broken_traces

    from tb_dlprof_plugin.fleet.run_writer import write_run

_OURS = 0.5
"""Share of the inputs that our mutations make."""
_LONGEST = 40_000
_NO_EVENT_FILE = (ValueError, IndexError, OSError, EOFError, DecodeError, struct.error, zlib.error)
"""What our mutations raise where theirs have left no event file with a profile in it."""

Mutate = Callable[[bytes, random.Random], bytes]
Fault = Callable[[bytes], str]
"""What is wrong with the reading of an input; "" if nothing is."""


def traces(folder: Path) -> tuple[list[bytes], Mutate, Fault]:
    """Seeds, mutations and check of the reader of traces."""
    path = folder / "trace.json"
    seeds = [*broken_traces.sound_traces(6).values(), *broken_traces.sound_traces(40).values()]

    def mutate(data: bytes, source: random.Random) -> bytes:
        return broken_traces.apply(data, broken_traces.draw(source))

    return seeds, mutate, lambda data: broken_traces.breaks(data, path)


def stored_files(folder: Path) -> tuple[list[bytes], Mutate, Fault]:
    """Seeds, mutations and check of the reader of event files: their checksums are made right before they are read."""
    path = folder / "events.out.tfevents.1.tb_dlprof"
    seeds = []
    for number, profile in enumerate(outcome.small_profiles()):
        seeds.append(event_files.unpacked(write_run(folder / str(number), profile).read_bytes()))

    def mutate(data: bytes, source: random.Random) -> bytes:
        try:
            return event_files.unpacked(event_files.mutated_file(event_files.packed_again(data), source))
        except (
            ValueError,
            IndexError,
            OSError,
            EOFError,
            DecodeError,
            struct.error,
            zlib.error,
        ):  # no longer an event file with a profile
            return data

    def fault(data: bytes) -> str:
        path.write_bytes(event_files.packed_again(data))
        return broken_traces.fault_of(lambda: event_files.read_everything(path), len(data))

    return seeds, mutate, fault


DECODERS = {"traces": traces, "event-files": stored_files}


def main() -> None:
    """Entry point of the command; atheris ends the process."""
    parser = argparse.ArgumentParser(description="Look for inputs that break a decoder, guided by coverage.")
    parser.add_argument("decoder", choices=DECODERS)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--found", type=Path, default=Path(tempfile.gettempdir()))
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="guided-"))
    seeds, mutate, fault = DECODERS[given.decoder](folder)
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, data in enumerate(seeds):
        (corpus / str(number)).write_bytes(data)

    def one(data: bytes) -> None:
        if wrong := fault(data):
            raise RuntimeError(wrong)

    def mutator(data: bytes, most: int, seed: int) -> bytes:
        source = random.Random(seed)
        if source.random() < _OURS:
            return mutate(data, source)[:most]
        return atheris.Mutate(data, most)  # type: ignore[no-any-return,unused-ignore]

    limits = [
        f"-max_total_time={int(60 * given.minutes)}",
        f"-max_len={max(_LONGEST, *map(len, seeds))}",
        "-timeout=60",
    ]
    options = [f"-seed={given.seed}", f"-artifact_prefix={given.found}/", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *limits, *options, str(corpus)], one, custom_mutator=mutator)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
