"""The planner on the study's stack: deeper ones from the recording of 8 + 8 layers, and the most layers that fit.

    python -m lab.layer_resources.compare tests/data/layer_resources

Prints what was measured of stacks with both kinds of layers in training, the forecast and its error, and the most
layers of each kind under the study's limit: those that run by the replay, and those whose whole interval fits.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from tb_dlprof_plugin.model.plan_request import PlanRequest
from tb_dlprof_plugin.planning.memory.plan import MemoryPlan, MemoryPlanner
from tb_dlprof_plugin.planning.memory.replay import runs_under
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.logdir import read_profiles

RECORDED_LAYERS = 8
"""Convolutions, and as many linear layers, of the recorded stack."""
_CONVOLUTION, _LINEAR = "7", "15"
"""The last of each."""


class Stack:
    """The recorded stack and what was measured of others.

    Args:
        directory: what `record` wrote.
    """

    def __init__(self, directory: Path) -> None:
        self.planner = MemoryPlanner(ProfileView(read_profiles(directory / "stack")[0].profile))
        self.measured: dict[str, Any] = json.loads((directory / "measured.json").read_text())["stack"]

    def request(self, convolutions: int, linears: int) -> PlanRequest:
        """So many layers of each kind, `RECORDED_LAYERS` at the least."""
        return PlanRequest(
            layers={_CONVOLUTION: convolutions - RECORDED_LAYERS, _LINEAR: linears - RECORDED_LAYERS},
            memory_bytes=self.measured["limit_bytes"],
        )

    def trainings(self) -> list[tuple[dict[str, Any], MemoryPlan]]:
        """Measured trainings of stacks with both kinds, each with its forecast."""
        rows = [row for row in self.measured["runs"] if row["training"] and row["linears"]]
        return [
            (row, self.planner.plan(self.request(row["convolutions"], row["linears"]), largest=False)) for row in rows
        ]

    def most(self, whole_interval: bool) -> int:
        """The most layers of each kind that run under the limit; with their whole interval where asked."""
        limit = self.measured["limit_bytes"]

        def fits(count: int) -> bool:
            request = self.request(count, count)
            if whole_interval:
                return self.planner.plan(request, largest=False).smallest_limit.high <= limit
            return runs_under(self.planner.changed(request), self.planner.recorded_settings, limit)

        works, fails = RECORDED_LAYERS, 2 * RECORDED_LAYERS
        while fits(fails):
            works, fails = fails, 2 * fails
        while fails - works > 1:
            middle = (works + fails) // 2
            works, fails = (middle, fails) if fits(middle) else (works, middle)
        return works


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    stack = Stack(parser.parse_args().directory)
    for row, found in stack.trainings():
        for figure in ("peak_allocated", "peak_reserved"):
            forecast, truth = getattr(found, figure), row[figure]
            print(
                f"{row['convolutions']} + {row['linears']} {figure:14} {truth / 1e6:8.1f} MB, forecast "
                f"{forecast.value / 1e6:8.1f} ({100 * (forecast.value / truth - 1):+.2f} %)"
            )
    print(
        f"under {stack.measured['limit_bytes'] / 1e6:,.0f} MB in training: {stack.most(False)} of each kind run, "
        f"{stack.most(True)} with the whole interval"
    )


if __name__ == "__main__":
    main()
