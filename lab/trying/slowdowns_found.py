"""How often the pytest plugin calls a step slower: of the same code (false alarms), and of injected slow-downs, next to
what `tb-dlprof power` says from runs of the same code against itself.

Each test is a whole run of pytest in a repository of its own: the step computes products of small matrices with numpy,
and the working tree computes so many percent more of them than the commit. Runs for `power` and tests are mixed, as a
busy machine changes: a turn is two runs for `power`, four tests of the same code and one of each slow-down.

    python -m lab.trying.slowdowns_found --turns 50 --out found.json
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tb_dlprof_plugin.pytest_plugin.power import detected, power_of

ROOT = Path(__file__).resolve().parents[2]
UNITS = 300
_STEP = """
import numpy

_A = numpy.random.default_rng(0).random((48, 48))


def step():
    for _ in range({units}):
        _A @ _A
"""
_TEST = """
import work


def test_step(dlprof):
    dlprof.not_slower(work.step, than="HEAD", percent={limit}, seconds={seconds})
"""
_SAME = 4
"""Tests of the same code in a turn."""


def main() -> None:
    """Measure, and print what was found next to what was expected."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=50)
    parser.add_argument("--limit", type=float, default=1.0, help="percent, of the tests")
    parser.add_argument("--seconds", type=float, default=3.0, help="of the tests, for a pair of processes")
    parser.add_argument("--slowdowns", type=float, nargs="*", default=[2.0, 5.0, 10.0])
    parser.add_argument("--minutes", type=float, default=60.0, help="after which no turn begins")
    parser.add_argument("--out", type=Path, help="write what was measured as JSON, after each turn")
    given = parser.parse_args()
    found: dict[float, list[dict[str, Any]]] = {}
    against_itself: list[dict[str, Any]] = []
    loads: list[float] = []
    until = time.monotonic() + 60 * given.minutes
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder)
        _make(repository, given.limit, given.seconds)
        for turn in range(given.turns):
            if time.monotonic() > until:
                break
            loads.append(os.getloadavg()[0])
            against_itself += _pytest(repository, 0.0, "--dlprof-power=2")
            for slowdown in [0.0] * _SAME + given.slowdowns:
                found.setdefault(slowdown, []).extend(_pytest(repository, slowdown))
            print(f"turn {turn + 1}, load {loads[-1]:.1f}", flush=True)
            if given.out is not None:
                told = {"loads": loads, "power": against_itself, "tests": found}
                given.out.write_text(json.dumps(told))
    _report(found, against_itself, given.limit, loads)


def _report(
    found: dict[float, list[dict[str, Any]]], against_itself: list[dict[str, Any]], limit: float, loads: list[float]
) -> None:
    turns = [one["log_ratios"] for one in against_itself]
    runs = [run for turn in turns for run in turn]
    power = power_of({**against_itself[0], "log_ratios": runs})
    print(
        f"load {min(loads):.1f} to {max(loads):.1f}; {power.device}, {os.cpu_count()} cores; "
        f"{power.step_ms:.2f} ms a step"
    )
    print(f"power, of {len(runs)} runs: a round varies by {power.round_percent:.1f} %, two processes by ", end="")
    print(f"{power.processes_percent:.1f} %; {power.smallest_percent} % is found in 80 % of tests")
    for slowdown, verdicts in sorted(found.items()):
        kinds = Counter(one["verdict"] for one in verdicts)
        # As the pairs of a test, the two runs of a turn follow each other.
        each = [detected(turn, slowdown, limit) for turn in turns]
        slower, unsure, not_slower = (
            statistics.fmean(getattr(one, f"{kind}_percent") for one in each)
            for kind in ("slower", "cannot_say", "not_slower")
        )
        print(
            f"{slowdown:4g} % slower, {len(verdicts)} tests: {100 * kinds['slower'] / len(verdicts):.0f} % slower "
            f"(power: {slower:.0f}), {100 * kinds['cannot_say'] / len(verdicts):.0f} % cannot say "
            f"({unsure:.0f}), {100 * kinds['not_slower'] / len(verdicts):.0f} % not slower "
            f"({not_slower:.0f})"
        )


def _make(repository: Path, limit: float, seconds: float) -> None:
    (repository / "work.py").write_text(_STEP.format(units=UNITS))
    (repository / "test_speed.py").write_text(_TEST.format(limit=limit, seconds=seconds))
    for command in ("init -q .", "add .", "-c user.name=lab -c user.email=lab@example.org commit -q -m base"):
        subprocess.run(["git", "-C", str(repository), *command.split()], check=True)


def _pytest(repository: Path, slowdown_percent: float, *options: str) -> list[dict[str, Any]]:
    """What the plugin writes of a test with this slow-down in the working tree."""
    units = round(UNITS * (1 + slowdown_percent / 100))
    (repository / "work.py").write_text(_STEP.format(units=units))
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "verdicts.json"
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-p",
                "tb_dlprof_plugin.pytest_plugin",
                f"--dlprof-json={written}",
                *options,
            ],
            cwd=repository,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.DEVNULL,
            check=False,
        )
        steps: list[dict[str, Any]] = json.loads(written.read_text())["steps"]
        return steps


if __name__ == "__main__":
    main()
