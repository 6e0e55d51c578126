"""Plans for several GPUs, from one GPU's recording of each model, against what `shared_models` measured.

python -m lab.memory_plan.compare_shared_models DIRECTORY
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tb_dlprof_plugin.model.plan_request import PlanRequest
from tb_dlprof_plugin.planning.memory.plan import Bytes, MemoryPlanner
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.logdir import read_profiles


@dataclass(frozen=True)
class Row:
    """A model shared in one way: bytes that the rank with most of them took, and the plan's."""

    model: str
    way: str
    peak_allocated: int
    own_peak_allocated: int
    peak_reserved: int
    allocated: Bytes
    reserved: Bytes


def compared(directory: Path) -> Iterator[Row]:
    """What was measured next to what the planner says, from the recordings in the same directory."""
    truth = json.loads((directory / "truth.json").read_text())
    models = dict.fromkeys(ranks[0]["model"] for ranks in truth["rows"])
    planners = {model: MemoryPlanner(ProfileView(read_profiles(directory / model)[0].profile)) for model in models}
    for ranks in truth["rows"]:
        if any("error" in one for one in ranks):
            continue
        model, way = ranks[0]["model"], ranks[0]["way"]
        plan = planners[model].plan(PlanRequest(shard=way, gpus=truth["gpus"]))
        figures = ("peak_allocated", "own_peak_allocated", "peak_reserved")
        took = {figure: max(one[figure] for one in ranks) for figure in figures}
        yield Row(model, way, **took, allocated=plan.peak_allocated, reserved=plan.peak_reserved)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    rows = list(compared(parser.parse_args().directory))
    for name in ("allocated", "reserved"):
        off, inside = [], 0
        for row in rows:
            known, found = getattr(row, f"peak_{name}"), getattr(row, name)
            off.append(100 * (found.value / known - 1))
            true = found.low <= known <= found.high
            inside += true
            print(
                f"{row.model:6} {row.way:6} {name:9} {known / 1e6:8.1f} MB, planned {found.value / 1e6:8.1f} "
                f"({off[-1]:+5.2f} %, {found.low / 1e6:.1f} to {found.high / 1e6:.1f}){'' if true else '  outside'}"
            )
        median, worst = np.median(np.abs(off)), np.max(np.abs(off))
        print(f"{name}: {len(off)}, median {median:.2f} %, worst {worst:.2f} %, intervals true in {inside}")


if __name__ == "__main__":
    main()
