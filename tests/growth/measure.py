"""How time and memory of everything that is asked grow with a recording, thing by thing; worst first.

    python -m tests.growth.measure [--only shapes,modules] [--questions advice,plan] [--repeat 3] [--scale 1] [--all]

A recording is generated with n, 2n, 4n and 8n of one thing. The slope is that of the logarithms over the upper three:
1 where twice as much takes twice as long. What takes less than 0.1 s of the processor with the most of it is too little
to matter; of the rest memory counts from 3 MB on, with n and 2n.
"""

from __future__ import annotations

import argparse
import gc
import math
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from growth.generator import DIMENSIONS
from growth.questions import in_child, questions, recording
from support.all_answers import Question, ask

MOST_SLOPE = 1.15
_FIRST = {
    "events": 500, "steps": 100, "ops": 250, "shapes": 200, "kernels": 250, "op names": 250, "collectives": 500,
    "collectives without bytes": 500, "modules": 200, "depth": 500, "recursion": 1_000, "streams": 300, "threads": 400,
    "memory events": 500, "annotations": 500, "graph launches": 400, "ranks": 4,
}  # fmt: skip
"""The n of each dimension."""
_LEAST_S, _LEAST_MB = 0.1, 3.0
"""Of what matters."""


@dataclass
class Growth:
    """Seconds of the processor, the least that were measured, and MB of memory at the peak, by n."""

    dimension: str
    question: str
    seconds: dict[int, float] = field(default_factory=dict)
    megabytes: dict[int, float] = field(default_factory=dict)

    @property
    def matters(self) -> bool:
        """Whether it takes long enough with the most of the dimension."""
        return not self.seconds or max(self.seconds.values()) >= _LEAST_S

    @property
    def time_slope(self) -> float | None:
        """None where it is too little to matter."""
        return _slope(self.seconds, _LEAST_S)

    @property
    def memory_slope(self) -> float | None:
        """The same of memory."""
        return _slope(self.megabytes, _LEAST_MB)

    @property
    def worst(self) -> float:
        """The larger slope."""
        return max(self.time_slope or 0.0, self.memory_slope or 0.0)


def _slope(measured: dict[int, float], least: float) -> float | None:
    upper = sorted(measured.items())[-3:]
    if len(upper) < 2 or upper[-1][1] < least:
        return None
    x, y = (np.log([max(pair[side], 1e-6) for pair in upper]) for side in (0, 1))
    return float(np.polyfit(x, y, 1)[0])


def grow(dimension: str, asked: Collection[str] = (), repeat: int = 3, scale: float = 1.0) -> list[Growth]:
    """How what is asked grows with a dimension; by default everything is asked."""
    found: dict[str, Growth] = {}
    with tempfile.TemporaryDirectory() as folder:
        sizes = [math.ceil(_FIRST[dimension] * scale) * 2**power for power in range(4)]
        # What is imported with the first question does not count.
        for question in questions(recording(dimension, 2, Path(folder))):
            ask(question)
        of_size = {n: _by_name(questions(recording(dimension, n, Path(folder)))) for n in sizes}
        # A longer list is that of a larger recording, which has more to open.
        names = [name for name in of_size[sizes[-1]] if all(name in one for one in of_size.values())]
        names = [name for name in names if not asked or name.startswith(tuple(asked))]
        for _ in range(repeat):
            for name in names:
                one = found.setdefault(name, Growth(dimension, name))
                # The largest first: what is fast then is so with less.
                for n in sizes[::-1] if one.matters else ():
                    seconds = float(in_child(of_size[n][name], _seconds))
                    one.seconds[n] = min(seconds, one.seconds.get(n, math.inf))
                    if not one.matters:
                        break
        for name, one in found.items():
            # Tracing is slow, but says the same each time: less of the dimension will do.
            for n in sizes[:2] if one.matters else ():
                one.megabytes[n] = float(in_child(of_size[n][name], _megabytes))
    return list(found.values())


def _by_name(asked: Iterator[Question]) -> dict[str, Callable[[], object]]:
    return {name: lambda question=(name, answer): ask(question) for name, answer in asked}


def _seconds(work: Callable[[], object]) -> str:
    # Else a collection would copy what the parent holds.
    gc.freeze()
    begin = time.process_time()
    work()
    return str(time.process_time() - begin)


def _megabytes(work: Callable[[], object]) -> str:
    tracemalloc.start()
    work()
    return str(tracemalloc.get_traced_memory()[1] / 1e6)


def table(found: list[Growth]) -> str:
    """One line for each of what matters, worst first."""
    lines = [f"{'dimension':26}{'question':30}{'n':>7}{'s at 8n':>9}{'slope':>7}{'MB at 2n':>10}{'slope':>7}"]
    for one in sorted(found, key=lambda one: -one.worst):
        n = max(one.seconds)
        slopes = ["–" if slope is None else f"{slope:.2f}" for slope in (one.time_slope, one.memory_slope)]
        lines.append(
            f"{one.dimension:26}{one.question[:29]:30}{n // 8:7,}{one.seconds[n]:9.2f}{slopes[0]:>7}"
            f"{one.megabytes.get(n // 4, 0.0):10.0f}{slopes[1]:>7}"
        )
    return "\n".join(lines)


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(DIMENSIONS), help="dimensions")
    parser.add_argument("--questions", default="", help="begins of their names; all by default")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="of n")
    parser.add_argument("--all", action="store_true", help="also what is too little to matter")
    chosen = parser.parse_args()
    found: list[Growth] = []
    for dimension in chosen.only.split(","):
        begin = time.perf_counter()
        found += grow(dimension, [one for one in chosen.questions.split(",") if one], chosen.repeat, chosen.scale)
        print(f"{dimension}: measured in {time.perf_counter() - begin:.0f} s", file=sys.stderr)
    print(table([one for one in found if chosen.all or one.worst]))


if __name__ == "__main__":
    main()
