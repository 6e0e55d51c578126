"""Joins two recordings of the same workloads: each launch's context with its counters.

Both recordings are cut at the marker kernels. A search for the fastest algorithm may end differently twice: of a
workload whose two runs did not launch the same kernels in the same order, only the kernels stay that both launched and
that the profiler shows in one context; the workload is named.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from .counters import CountedLaunch, read_counts
from .launches import ProfiledLaunch, read_launches
from .result import Machine, Result, Row, Step, Workload

MARKER = "spin_kernel"


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_Launch = TypeVar("_Launch", bound=_Named)


def match(
    directory: Path, describe: Callable[[str], Workload], say: Callable[[str], None], groups: list[str] | None = None
) -> Result:
    """The result of the recordings in ``directory``.

    Args:
        directory: what `record` left.
        describe: a workload's name to what is known about it.
        say: called with each group's count, and each workload that is dropped with the reason.
        groups: which to read; all that were recorded where None.

    Raises:
        TraceError, OSError: a recording cannot be read.
    """
    machine = msgspec.json.decode((directory / "machine.json").read_bytes(), type=Machine)
    result = Result(machine, [], [], [], {})
    row_of: dict[tuple[str, str, str, bool], int] = {}
    for trace in sorted(directory.glob("*.trace.json.gz")):
        group = trace.name.removesuffix(".trace.json.gz")
        if groups is not None and group not in groups:
            continue
        profiled = _by_workload(read_launches(trace), directory / f"{group}.profile.log")
        counted = _by_workload(list(_counts(directory, group)), directory / f"{group}.count.log")
        launches = 0
        for name, shown in profiled.items():
            reason = _difference(shown, counted.get(name))
            if reason:
                result.dropped[name] = reason
                pairs = _shared(shown, counted.get(name, []))
                say(f"not the same twice: {name}: {reason}; {len(pairs)} launches kept")
                _add(result, row_of, describe(name), pairs)
                continue
            launches += len(shown)
            _add(result, row_of, describe(name), list(zip(shown, counted[name], strict=True)))
        say(f"{group}: {launches} launches matched")
    return result


def _counts(directory: Path, group: str) -> Iterator[CountedLaunch]:
    csv.field_size_limit(1 << 30)
    path = directory / f"{group}.counts.csv"
    if path.exists():
        with path.open() as lines:
            yield from read_counts(lines)
    else:
        with gzip.open(f"{path}.gz", "rt") as unpacked:
            yield from read_counts(unpacked)


def _by_workload(launches: Sequence[_Launch], log: Path) -> dict[str, list[_Launch]]:
    """The launches behind each marker, by the name that the log has for it; failed calls are left out."""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    measured = [line for line in lines if line["stage"] == "measured"]
    segments: list[list[_Launch]] = []
    for launch in launches:
        if MARKER in launch.name:
            segments.append([])
        elif segments:
            segments[-1].append(launch)
    if len(segments) != len(measured):
        raise ValueError(f"{log}: {len(measured)} workloads were measured, {len(segments)} markers recorded")
    return {line["workload"]: segment for line, segment in zip(measured, segments, strict=True) if not line["error"]}


def _difference(shown: list[ProfiledLaunch], counted: list[CountedLaunch] | None) -> str:
    if counted is None:
        return "not counted"
    if len(shown) != len(counted):
        return f"{len(shown)} launches profiled, {len(counted)} counted"
    for at, (one, other) in enumerate(zip(shown, counted, strict=True)):
        if one.name != other.name:
            return f"launch {at} is {one.name[:80]} in one and {other.name[:80]} in the other"
    return ""


def _shared(shown: list[ProfiledLaunch], counted: list[CountedLaunch]) -> list[tuple[ProfiledLaunch, CountedLaunch]]:
    contexts: dict[str, dict[tuple[str, str], ProfiledLaunch]] = {}
    for launch in shown:
        contexts.setdefault(launch.name, {}).setdefault((launch.op, launch.input_types), launch)
    only = {name: next(iter(found.values())) for name, found in contexts.items() if len(found) == 1}
    return [(only[counts.name], counts) for counts in counted if counts.name in only]


def _add(
    result: Result,
    row_of: dict[tuple[str, str, str, bool], int],
    workload: Workload,
    pairs: list[tuple[ProfiledLaunch, CountedLaunch]],
) -> None:
    if not pairs:
        return
    number = len(result.workloads)
    result.workloads.append(workload)
    step: dict[int, list[int]] = {}
    for launch, counts in pairs:
        key = (launch.name, launch.op, launch.input_types, workload.tf32)
        if key not in row_of:
            row_of[key] = len(result.rows)
            result.rows.append(Row(*key, [], 0, 0, 0, 0, 0, 0))
        row = result.rows[row_of[key]]
        if row.workloads[-1:] != [number]:
            row.workloads.append(number)
        row.launches += 1
        row.with_matrix_work += counts.matrix_instructions > 0
        row.hmma += counts.hmma
        row.imma += counts.imma
        row.dmma += counts.dmma
        row.duration_ns += launch.duration_ns
        sums = step.setdefault(row_of[key], [0, 0])
        sums[0] += 1
        sums[1] += launch.duration_ns
    if workload.model and workload.name not in result.dropped:
        result.steps.append(Step(number, [(row, launches, ns) for row, (launches, ns) in step.items()]))
