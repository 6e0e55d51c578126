"""The planner's figures against what `lab.memory_plan.inputs_and_splits` measured.

    python -m lab.memory_plan.compare_inputs_and_splits DIRECTORY

Forecasts come from DIRECTORY/<model>/base, or for models of `record` from `recorded/` and `held_out/` in
`tests/data/memory_plan`. Prints for each configuration what was measured, the forecast, its error, and whether the
truth lies within its interval; for the largest batch the most samples that ran and the fewest that did not.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from tb_dlprof_plugin.model.plan_request import PlanError, PlanRequest
from tb_dlprof_plugin.planning.memory.capacity import Capacity
from tb_dlprof_plugin.planning.memory.plan import MemoryPlanner
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.logdir import read_profiles

from .compare import blocks_of

_DATA = Path(__file__).resolve().parents[2] / "tests" / "data" / "memory_plan"
FIGURES = ("peak_allocated", "peak_reserved")


def planner_of(directory: Path, model: str) -> MemoryPlanner:
    """Of the recording of a model."""
    places = (directory, _DATA / "recorded", _DATA / "held_out")
    found = next(one / model / "base" for one in places if (one / model / "base").is_dir())
    return MemoryPlanner(ProfileView(read_profiles(found)[0].profile))


def compare(planner: MemoryPlanner, row: dict[str, Any]) -> list[str]:
    """Lines about a measured configuration."""
    plan = dict(row["plan"])
    if plan.get("offload") == "blocks":
        plan["offload"] = tuple(blocks_of(planner))
    limit = plan.pop("memory_bytes", None)
    try:
        if limit is not None:
            # The limit was on the allocator alone, so that nothing goes off it for a context.
            most = planner.largest_batch(PlanRequest(), Capacity("limit", limit, limit, "given")) or 0
            works, fails = row["largest_batch"], row["smallest_failing"]
            return [f"largest batch: {works} ran, {fails} did not; forecast {most} ({100 * (most / works - 1):+.1f} %)"]
        found = planner.plan(PlanRequest(**plan))
    except PlanError as error:
        return [f"no forecast: {error}"]
    lines = []
    for figure in FIGURES:
        forecast, truth = getattr(found, figure), row[figure]
        within = "within" if forecast.low <= truth <= forecast.high else "outside"
        off = 100 * (forecast.value / truth - 1)
        lines.append(
            f"{figure:14} {truth / 1e6:8.1f} MB, forecast {forecast.value / 1e6:8.1f} ({off:+.2f} %), {within}"
        )
    return lines


def main() -> None:
    """Print each configuration."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    given = parser.parse_args()
    planners: dict[str, MemoryPlanner] = {}
    for row in json.loads((given.directory / "inputs_and_splits.json").read_text())["rows"]:
        model = row["model"]
        if model not in planners:
            planners[model] = planner_of(given.directory, model)
        words = ", ".join(f"{name} {value}" for name, value in row["plan"].items()) or "as recorded"
        for line in [row["error"]] if row.get("error") else compare(planners[model], row):
            print(f"{model:7} {words:26} {line}")


if __name__ == "__main__":
    main()
