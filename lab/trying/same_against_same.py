"""How often ``tb-dlprof try`` calls a gain where there is none: a script against itself, on a busy machine.

Each trial starts the unchanged script again as the variant, as for a remedy, and measures it against the unchanged
script that runs already: so the differences of two processes (where their memory lies, which cores they got) are part
of it. As in a trial of a remedy, a gain has to hold in a second process. Meanwhile other processes come and go. At
95 %, at most 5 % of the trials may call a gain.

    python -m lab.trying.same_against_same --trials 50 [--inside]

With ``--inside`` both are in one process, and a remedy that changes nothing in this script is switched on and off.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tb_dlprof_plugin.capture.launcher.protocol import INJECTED
from tb_dlprof_plugin.trial.experiment import Bench, Measured
from tb_dlprof_plugin.trial.isolation import choose
from tb_dlprof_plugin.trial.statistics import WORTH
from tb_dlprof_plugin.trial.switched import Switched
from tb_dlprof_plugin.trial.variant import Laboratory, Variant, VariantError, scratch_folder

SCRIPT = Path(__file__).parent / "planted" / "good_cpu_mlp.py"
_CHANGES_NOTHING = ("zero_grad_to_none",)
"""In the script, which does so already."""
_START_S = 300.0
_LOAD = """
import random, time
random.seed(int(%d))
while True:
    end = time.perf_counter() + random.expovariate(1 / 1.5)
    while time.perf_counter() < end:
        pass
    time.sleep(random.expovariate(1 / 1.5))
"""


def measure(
    trials: int, deadline_s: float, script: Path, precision: float, seconds: float, inside: bool
) -> list[Measured]:
    """Trials of the script against itself, each with a fresh process or inside one, until the deadline of
    `time.monotonic`."""
    folder = scratch_folder()
    laboratory = Laboratory([sys.executable, str(script)], folder, INJECTED, choose(os.getcwd()))
    found: list[Measured] = []
    baseline = Variant(laboratory)
    try:
        bench = Bench(precision)
        baseline.start(_START_S)
        bench.warm_up(baseline, _START_S)
        while len(found) < trials and time.monotonic() < deadline_s:
            again = Variant(laboratory)
            try:
                if inside:
                    switched = Switched(baseline, _CHANGES_NOTHING)
                    bench.warm_up(switched, _START_S)
                    one = bench.compare(Switched(baseline), switched, seconds)
                    alone = one.gain.certain
                else:
                    again.start(_START_S)
                    bench.warm_up(again, _START_S)
                    one = bench.compare(baseline, again, seconds)
                    alone = one.gain.certain
                    one = bench.in_a_second_process(baseline, again, one, math.inf, _START_S)
            except VariantError as error:
                print(f"a trial failed: {error}")
                continue
            finally:
                again.end()
            found.append(one)
            gain = one.gain
            print(
                f"{len(found):3}  {gain.percent:+6.2f} %  ({gain.low:+.2f} to {gain.high:+.2f})  {gain.quads} quads"
                f"  {'GAIN' if gain.certain and gain.percent >= WORTH else 'not in a second process' if alone else ''}",
                flush=True,
            )
    finally:
        baseline.end()
        shutil.rmtree(folder, ignore_errors=True)
    return found


@contextlib.contextmanager
def busy(processes: int) -> Iterator[None]:
    """Other processes that compute for a while and then rest, at random."""
    chosen = random.Random(1)
    running = [subprocess.Popen([sys.executable, "-c", _LOAD % chosen.randrange(1 << 30)]) for _ in range(processes)]
    try:
        yield
    finally:
        for one in running:
            one.kill()
            one.wait()


def main() -> None:
    """Print the table and the number of false gains."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--load", type=int, default=1, help="other processes")
    parser.add_argument("--seconds", type=float, default=12.0, help="for the measurement of one trial")
    parser.add_argument("--precision", type=float, default=1.0, help="percent")
    parser.add_argument("--deadline", type=float, default=3600.0, help="seconds for the whole")
    parser.add_argument("--script", type=Path, default=SCRIPT)
    parser.add_argument("--inside", action="store_true", help="both in one process")
    parser.add_argument("--out", type=Path, help="write the log ratios of all quads as JSON")
    given = parser.parse_args()
    with busy(given.load):
        until = time.monotonic() + given.deadline
        found = measure(given.trials, until, given.script, given.precision, given.seconds, given.inside)
    gains = [one.gain for one in found]
    called = sum(one.certain and one.percent >= WORTH for one in gains)
    largest = max((abs(one.percent) for one in gains), default=0.0)
    outside = sum(not one.low <= 0 <= one.high for one in gains if math.isfinite(one.low))
    print(
        f"{len(gains)} trials of the same against the same: {called} called a gain; "
        f"{outside} intervals of 95 % without 0; the largest estimate {largest:.2f} %"
    )
    if given.out is not None:
        given.out.write_text(json.dumps([one.log_ratios for one in found]))


if __name__ == "__main__":
    main()
