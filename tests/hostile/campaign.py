"""Tries hostile inputs of every kind for hours, on several processes, and goes on where it was stopped.

    python -m tests.hostile.campaign --state FOLDER --minutes 60 --workers 2 [--kinds traces,answers]
    python -m tests.hostile.campaign --state FOLDER --only requests:1234

Inputs have numbers, and input n of a kind is always the same. FOLDER/counts.json says how many were tried, let in and
asked about, the processor's hours, the most memory, and each fault with the number of the first input that shows it. It
is written after each block of inputs; what was not finished when the campaign ended is tried again. Every fault found
gets a test with its smallest input. The exit status is 1 where there are faults.
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import os
import re
import sys
import tempfile
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from hostile.kinds import KINDS, Outcome, Try, source_of

BLOCK = {
    "traces": 400, "answers": 10, "ranks": 100, "event-files": 1_000, "blobs": 5_000, "requests": 500, "names": 20,
    "several-jobs": 50, "job-files": 400, "databases": 100, "xplanes": 100, "trials": 200, "plans": 50, "exports": 4,
}  # fmt: skip
"""Inputs that a worker tries at once: some ten seconds."""
_MOST_BYTES = 8 << 30
"""Of address space that a worker may have: ten times what it needs."""


@dataclass
class Counts:
    """What came of the inputs of a kind. ``next`` is the number of the first input that is in no block yet."""

    next: int = 0
    tried: int = 0
    let_in: int = 0
    answers: int = 0
    cpu_s: float = 0.0
    slowest_s: float = 0.0
    most_mb: float = 0.0
    faults: dict[str, list[int]] = field(default_factory=dict)
    """For each fault how often it was seen, and the number of the first input."""
    unfinished: list[int] = field(default_factory=list)
    """The first numbers of blocks that were begun."""

    def add(self, other: Counts) -> None:
        """Counts a finished block, too."""
        for name in ("tried", "let_in", "answers"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.cpu_s += other.cpu_s
        self.slowest_s, self.most_mb = max(self.slowest_s, other.slowest_s), max(self.most_mb, other.most_mb)
        for fault, (times, first) in other.faults.items():
            before = self.faults.get(fault, [0, first])
            self.faults[fault] = [before[0] + times, min(before[1], first)]


_ready: dict[str, Try] = {}


def _prepared(kind: str) -> Try:
    """What tries inputs of a kind, made once in a process."""
    if kind not in _ready:
        logging.getLogger("tb_dlprof_plugin").propagate = False
        _ready[kind] = KINDS[kind](Path(tempfile.mkdtemp(prefix=f"hostile-{kind}-")))
    return _ready[kind]


def attempt(kind: str, number: int) -> Outcome:
    """Tries one input."""
    return _prepared(kind)(source_of(kind, number))


def try_block(kind: str, first: int, count: int) -> Counts:
    """Tries inputs of a kind, one after the other."""
    found = Counts()
    _prepared(kind)
    began = time.process_time()
    for number in range(first, first + count):
        before = time.process_time()
        outcome = attempt(kind, number)
        found.slowest_s = max(found.slowest_s, time.process_time() - before)
        found.tried += 1
        found.let_in += outcome.let_in
        found.answers += outcome.answers
        for fault in outcome.faults:
            seen = found.faults.setdefault(_kind_of_fault(fault), [0, number])
            seen[0] += 1
    found.cpu_s = time.process_time() - began
    found.most_mb = _most_memory_mb()
    return found


def _kind_of_fault(fault: str) -> str:
    """A fault without the numbers of its input."""
    return re.sub(r"\d+(?:\.\d+)?(?=\D*$)|'[^']{30,}'", "...", fault.split("=")[0])[:160]


def _bound_memory() -> None:
    """An input that asks for all memory is a fault of its own, and not the end of the campaign or of the machine."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))


def _most_memory_mb() -> float:
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return 0.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(state: Path, kinds: list[str], minutes: float, workers: int) -> dict[str, Counts]:
    """Tries inputs until the time is over; returns all counts, those of earlier runs too."""
    state.mkdir(parents=True, exist_ok=True)
    counts = load(state)
    end = time.monotonic() + 60 * minutes
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=spawn, initializer=_bound_memory) as pool:
        going: dict[Future[Counts], tuple[str, int]] = {}
        spent = dict.fromkeys(kinds, 0.0)
        while going or time.monotonic() < end:
            while len(going) < workers and time.monotonic() < end:
                kind = min(kinds, key=spent.__getitem__)
                first = block_to_try(
                    counts.setdefault(kind, Counts()), kind, [at for of, at in going.values() if of == kind]
                )
                spent[kind] += 1
                going[pool.submit(try_block, kind, first, BLOCK[kind])] = kind, first
            for done in wait(going, return_when=FIRST_COMPLETED).done:
                kind, first = going.pop(done)
                found = done.result()
                spent[kind] += found.cpu_s - 1
                for fault in sorted(set(found.faults) - set(counts[kind].faults)):
                    print(f"{kind}:{found.faults[fault][1]}: {fault}", flush=True)
                counts[kind].add(found)
                counts[kind].unfinished.remove(first)
                save(state, counts)
    return counts


def block_to_try(counts: Counts, kind: str, going: list[int]) -> int:
    """The first number of a block: of one that an earlier run did not finish, else of a new one."""
    for first in counts.unfinished:
        if first not in going:
            return first
    first = counts.next
    counts.next += BLOCK[kind]
    counts.unfinished.append(first)
    return first


def load(state: Path) -> dict[str, Counts]:
    """The counts that a folder holds."""
    file = state / "counts.json"
    return {kind: Counts(**one) for kind, one in json.loads(file.read_text()).items()} if file.exists() else {}


def save(state: Path, counts: dict[str, Counts]) -> None:
    """Writes the counts whole or not at all."""
    written = state / "counts.json.new"
    written.write_text(json.dumps({kind: asdict(one) for kind, one in counts.items()}, indent=1))
    os.replace(written, state / "counts.json")


def table(counts: dict[str, Counts]) -> str:
    """A line for each kind."""
    lines = [f"{'kind':<13}{'tried':>10}{'let in':>10}{'answers':>12}{'hours':>8}{'slowest':>9}{'MB':>7}{'faults':>8}"]
    for kind, one in counts.items():
        hours, faults = one.cpu_s / 3600, len(one.faults)
        counted = f"{one.tried:>10,}{one.let_in:>10,}{one.answers:>12,}{hours:>8.2f}"
        lines.append(f"{kind:<13}{counted}{one.slowest_s:>7.1f} s{one.most_mb:>7.0f}{faults:>8}")
    return "\n".join(lines)


def main() -> int:
    """Entry point of the command; the number of its exit status."""
    parser = argparse.ArgumentParser(description="Try hostile inputs of every kind.")
    parser.add_argument("--state", type=Path, required=True, help="folder with the counts; a later run goes on there")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--kinds", default=",".join(KINDS), help="some of " + ", ".join(KINDS))
    parser.add_argument("--only", metavar="KIND:NUMBER", help="try one input and print what is wrong")
    given = parser.parse_args()
    if given.only:
        kind, _, number = given.only.partition(":")
        outcome = attempt(kind, int(number))
        print(f"{'let in' if outcome.let_in else 'refused'}, {outcome.answers} answers", *outcome.faults, sep="\n")
        return 1 if outcome.faults else 0
    counts = run(given.state, given.kinds.split(","), given.minutes, given.workers)
    print(table(counts))
    return 1 if any(one.faults for one in counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
