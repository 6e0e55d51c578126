"""The planner's figures from one recording of each model against what other configurations took.

    python -m lab.memory_plan.compare DIRECTORY

Reads what `lab.memory_plan.record` wrote. For each kind of change: the errors of peak allocated, peak reserved,
the smallest limit and the time of a step, the share of truths within their interval, and the quantiles of truth over
forecast that `planning/memory/rewrites.py` rests on; models that had no part in the rules apart. A step was timed
over a few steps without a profiler, so that one that the CPU paces varies.
"""

from __future__ import annotations

import argparse
import contextlib
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tb_dlprof_plugin.model.plan_request import PlanError, PlanRequest
from tb_dlprof_plugin.planning.memory.plan import Bytes, MemoryPlanner
from tb_dlprof_plugin.planning.memory.rewrites import changes_of
from tb_dlprof_plugin.planning.memory.step_time import NoStepTime, StepTime, step_time
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.logdir import read_profiles

FIGURES = ("peak_allocated", "peak_reserved", "smallest_limit")
STEP = "step"


def request_of(row: dict[str, Any], base: dict[str, Any], modules: list[str]) -> PlanRequest:
    """The question whose answer a measured configuration is."""
    return PlanRequest(
        batch_size=row["batch_size"] if row["batch_size"] != base["batch_size"] else None,
        precision="bf16" if row["precision"] == "bf16" else None,
        optimizer=row["optimizer"] if row["optimizer"] != base["optimizer"] else None,
        checkpoint=tuple(modules) if row["recompute"] else (),
        layers={modules[-1]: row["layers"]} if row["layers"] else {},
        set_to_none=None if row["set_to_none"] else False,
        accumulate=row["accumulate"],
        expandable_segments=True if row["expandable"] else None,
    )


def blocks_of(planner: MemoryPlanner) -> list[str]:
    """Paths of the blocks."""
    paths = {
        ".".join(slot.module.split(".")[:2]) for slot in planner.program.slots if slot.module.startswith("blocks.")
    }
    return sorted(paths, key=lambda path: int(path.split(".")[1]))


def compared(directory: Path) -> list[dict[str, Any]]:
    """One row per configuration that was measured: forecasts, intervals and truth in bytes."""
    truth = json.loads((directory / "truth.json").read_text())
    result = []
    for model in dict.fromkeys(row["model"] for row in truth["rows"]):
        rows = [row for row in truth["rows"] if row["model"] == model]
        view = ProfileView(read_profiles(directory / model / "base")[0].profile)
        planner = MemoryPlanner(view)
        for row in rows:
            if "failed" in row:
                continue
            request = request_of(row, rows[0], blocks_of(planner))
            changes = changes_of(view, request)
            kind = "recorded" if not changes else " + ".join(changes)
            kind = f"precision {row['precision']}" if changes == ["precision"] else kind
            try:
                found = planner.plan(request)
            except (PlanError, ValueError) as error:
                print(f"{model}, {kind}: {error}")
                continue
            row_found = {"model": model, "held_out": row["held_out"], "kind": kind, "plan": found, "truth": row}
            with contextlib.suppress(NoStepTime):
                row_found[STEP] = step_time(view, request)
            result.append(row_found)
    return result


def intervals(row: dict[str, Any]) -> Iterator[tuple[str, float, float, float, float]]:
    """Of a configuration: each figure with its truth, the forecast and its interval; bytes, and for the step ms."""
    for figure in FIGURES:
        known: int | None = row["truth"].get(figure)
        if known is not None:
            found: Bytes = getattr(row["plan"], figure)
            yield figure, known, found.value, found.low, found.high
    if STEP in row:
        step: StepTime = row[STEP]
        yield STEP, row["truth"]["step_ms"], step.ns / 1e6, step.low_ns / 1e6, step.high_ns / 1e6


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--rows", action="store_true", help="print each configuration")
    given = parser.parse_args()
    errors: dict[tuple[bool, str, str], list[float]] = defaultdict(list)
    inside: dict[tuple[bool, str, str], list[bool]] = defaultdict(list)
    for row in compared(given.directory):
        for figure, known, value, low, high in intervals(row):
            for kind in (row["kind"], "all"):
                errors[row["held_out"], kind, figure].append(value / known - 1)
                inside[row["held_out"], kind, figure].append(low <= known <= high)
            if given.rows:
                shown = f"{known:10.1f} ms" if figure == STEP else f"{known / 1e6:10.1f} MB"
                print(f"{row['model']:12} {row['kind']:26} {figure:15} {shown} {100 * (value / known - 1):+7.2f} %")
    for held_out in (False, True):
        print("\nmodels without a part in the rules" if held_out else "\nmodels of the rules")
        for (of, kind, figure), values in errors.items():
            if of == held_out:
                percent = 100 * np.abs(values)
                within = 100 * np.mean(inside[of, kind, figure])
                ratios = 1 / (1 + np.array(values))
                print(
                    f"{kind:26} {figure:15} {len(values):3}  median {np.median(percent):5.2f} %",
                    f"worst {percent.max():6.2f} %  within {within:3.0f} %",
                    f"truth/forecast {ratios.min():.3f} to {ratios.max():.3f}",
                    sep="  ",
                )
    peaks = [
        abs(one) for (_, kind, figure), of in errors.items() if (kind, figure) == ("all", FIGURES[0]) for one in of
    ]
    print(f"\nmedian error of peak allocated: {100 * np.median(peaks):.2f} %")


if __name__ == "__main__":
    main()
