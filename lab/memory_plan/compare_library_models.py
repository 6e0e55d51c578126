"""The planner's figures against what `lab.memory_plan.record_library_models` measured.

    python -m lab.memory_plan.compare_library_models DIRECTORY [--rows]

For each kind of change: median and worst error of peak allocated, peak reserved, the smallest limit and the time of a
step, and how many truths lie within their interval. Then the largest batch under `LIMIT_BYTES`, with the most samples
that ran and the fewest that did not.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tb_dlprof_plugin.model.plan_request import PlanError, PlanRequest
from tb_dlprof_plugin.planning.memory.capacity import Capacity
from tb_dlprof_plugin.planning.memory.plan import MemoryPlanner
from tb_dlprof_plugin.planning.memory.step_time import NoStepTime, step_time
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.logdir import read_profiles

FIGURES = ("peak_allocated", "peak_reserved", "smallest_limit")
STEP = "step"


@dataclass(frozen=True)
class Compared:
    """A figure in bytes, of a step in ms, with its forecast and the interval of that."""

    model: str
    kind: str
    figure: str
    truth: float
    forecast: float
    low: float
    high: float

    @property
    def off(self) -> float:
        """Error relative to the truth."""
        return self.forecast / self.truth - 1

    @property
    def within(self) -> bool:
        """Whether the truth lies within the interval."""
        return self.low <= self.truth <= self.high


@dataclass(frozen=True)
class Batch:
    """The most samples that ran, the fewest that did not, and the forecast of the most."""

    model: str
    kind: str
    runs: int
    fails: int
    forecast: int


_WORDS = {"batch_size": "batch size", "image_size": "input", "sequence_length": "input"}


def kind_of(plan: dict[str, Any]) -> str:
    """Of a configuration: its changes, in words."""
    words = [value if name == "precision" else _WORDS.get(name, name) for name, value in plan.items()]
    return " + ".join(words) or "recorded"


def _request(plan: dict[str, Any]) -> PlanRequest:
    arguments: dict[str, Any] = {name: tuple(one) if isinstance(one, list) else one for name, one in plan.items()}
    return PlanRequest(**arguments)


class Comparison:
    """What was measured, and what is forecast from the recordings with it.

    Args:
        directory: of `measured.json.gz` and the recordings.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        rows = json.loads(gzip.decompress((directory / "measured.json.gz").read_bytes()))["rows"]
        self._planners: dict[str, MemoryPlanner] = {}
        self.figures: list[Compared] = []
        self.batches: list[Batch] = []
        self.refused: list[str] = []
        self.missing = sorted({row["model"] for row in rows if not (directory / row["model"] / "base").is_dir()})
        for row in rows:
            if row["model"] in self.missing or "recorded" in row["plan"] or row.get("error") or row.get("failed"):
                continue
            try:
                self._add(row)
            except PlanError as error:
                self.refused.append(f"{row['model']}, {kind_of(row['plan'])}: {error}")

    def planner(self, model: str) -> MemoryPlanner:
        """Of the recording of a model."""
        if model not in self._planners:
            (stored,) = read_profiles(self._directory / model / "base")
            self._planners[model] = MemoryPlanner(ProfileView(stored.profile))
        return self._planners[model]

    def _add(self, row: dict[str, Any]) -> None:
        planner, plan = self.planner(row["model"]), dict(row["plan"])
        limit = plan.pop("memory_bytes", None)
        request, kind = _request(plan), kind_of(plan)
        if limit is not None:
            if row["largest_batch"] and row["smallest_failing"]:
                # The limit was on the allocator alone, so that nothing goes off it for a context.
                most = planner.largest_batch(request, Capacity("limit", limit, limit, "given")) or 0
                self.batches.append(Batch(row["model"], kind, row["largest_batch"], row["smallest_failing"], most))
            return
        found = planner.plan(request)
        # A row with a limit repeats the peaks of the row without.
        for figure in FIGURES[2:] if "smallest_limit" in row else FIGURES[:2]:
            one = getattr(found, figure)
            self.figures.append(Compared(row["model"], kind, figure, row[figure], one.value, one.low, one.high))
        if "step_ms" in row:
            try:
                step = step_time(planner.view, request)
            except NoStepTime:
                return
            self.figures.append(
                Compared(row["model"], kind, STEP, row["step_ms"], step.ns / 1e6, step.low_ns / 1e6, step.high_ns / 1e6)
            )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rows", action="store_true", help="print each configuration")
    given = parser.parse_args()
    found = Comparison(given.directory)
    by_kind: dict[tuple[str, str], list[Compared]] = defaultdict(list)
    for one in found.figures:
        for kind in (one.kind, "all"):
            by_kind[one.figure, kind].append(one)
        if given.rows:
            unit, scale = ("ms", 1.0) if one.figure == STEP else ("MB", 1e6)
            print(
                f"{one.model:16} {one.kind:26} {one.figure:15} {one.truth / scale:9.1f} {unit}, "
                f"{100 * one.off:+7.2f} % {'' if one.within else 'OUTSIDE'}"
            )
    for (figure, kind), of in sorted(by_kind.items()):
        off = 100 * np.abs([one.off for one in of])
        print(
            f"{figure:15} {kind:26} {len(of):3}  median {np.median(off):6.2f} %  worst {off.max():6.2f} %  "
            f"within {sum(one.within for one in of)} of {len(of)}"
        )
    for batch in found.batches:
        print(
            f"largest batch   {batch.model:16} {batch.kind:12} {batch.runs} ran, {batch.fails} did not; "
            f"forecast {batch.forecast} ({100 * (batch.forecast / batch.runs - 1):+.1f} %)"
        )
    for line in found.refused:
        print(f"refused: {line}")
    if found.missing:
        print(f"without a recording here: {', '.join(found.missing)}")


if __name__ == "__main__":
    main()
