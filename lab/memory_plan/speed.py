"""CPU time of the planner's answers, from event files alone.

    python -m lab.memory_plan.speed [DIRECTORY ...]

For each recorded model, in seconds of one core: opening the planner, one what-if, the largest batch, the frontier of
checkpoints, the page, and all its tables. The last line has the longest of each.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable
from pathlib import Path

from tb_dlprof_plugin.model.plan_request import PARTS, PlanQuestion, PlanRequest
from tb_dlprof_plugin.pages.plan import plan_page
from tb_dlprof_plugin.planning.memory.capacity import capacity
from tb_dlprof_plugin.planning.memory.module_choices import frontier
from tb_dlprof_plugin.planning.memory.plan import planner
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.logdir import read_profiles
from tb_dlprof_plugin.store.run_ref import RunRef

DATA = Path(__file__).resolve().parents[2] / "tests" / "data" / "memory_plan"
REF = RunRef("", "", 0, 0)
COLUMNS = ("open", "what-if", "largest batch", "frontier", "page", "all tables")


def seconds(work: Callable[[], object]) -> float:
    """CPU time of a call."""
    began = time.process_time()
    work()
    return time.process_time() - began


def times(view: ProfileView) -> list[float]:
    """By `COLUMNS`; each what-if is another, so that nothing is kept from the one before."""
    batch, room = view.profile.facts.batch_size or 1, capacity(view)
    opened = seconds(lambda: planner(view))
    known = planner(view)
    assert room is not None
    return [
        opened,
        seconds(lambda: known.plan(PlanRequest(batch_size=2 * batch)).verdict),
        seconds(lambda: known.largest_batch(PlanRequest(set_to_none=False), room)),
        seconds(lambda: list(frontier(view, known.program, known.recorded_settings))),
        *(
            seconds(functools.partial(plan_page, view, REF, PlanQuestion(batch_size=3 * batch, also=also)))
            for also in ((), PARTS)
        ),
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", type=Path, nargs="*", default=[DATA / "recorded", DATA / "held_out"])
    given = parser.parse_args()
    rows = []
    print(f"{'':12} {'kB':>5} {'slots':>6} " + " ".join(f"{name:>13}" for name in COLUMNS))
    for folder in sorted(path for directory in given.directories for path in directory.glob("*/base")):
        view = ProfileView(read_profiles(folder)[0].profile)
        rows.append(times(view))
        size = sum(path.stat().st_size for path in folder.iterdir()) / 1e3
        shown = " ".join(f"{value:13.3f}" for value in rows[-1])
        print(f"{folder.parent.name:12} {size:5.0f} {len(planner(view).program.slots):6} {shown}")
    print(f"{'longest':25} " + " ".join(f"{max(column):13.3f}" for column in zip(*rows, strict=True)))


if __name__ == "__main__":
    main()
