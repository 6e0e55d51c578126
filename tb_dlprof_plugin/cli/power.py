"""``tb-dlprof power``: how small a slow-down the tests of steps find on this machine."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from tb_dlprof_plugin.api.rows import rows_table
from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.options import Output, OutputFormat, Printing
from tb_dlprof_plugin.cli.printing import check_output, print_page, print_table
from tb_dlprof_plugin.cli.request_options import takes_requests
from tb_dlprof_plugin.cli.terminal import say, tell
from tb_dlprof_plugin.pytest_plugin.power import FOUND, Detected, Power, power_of

_LONGEST_REPORT = 4000


class PowerOfTests(msgspec.Struct, frozen=True):
    """What this machine can detect of the steps of tests."""

    tests: list[Power]


@takes_requests
def power(
    tests: Annotated[
        list[str],
        typer.Argument(metavar="TEST...", help="As pytest takes them, with its options.", show_default=False),
    ],
    runs: Annotated[int, typer.Option(metavar="N", min=2, help="Runs of each step against itself.")] = 10,
    limit: Annotated[
        float | None, typer.Option(metavar="PERCENT", help="Limit of the verdict; the test's own by default.")
    ] = None,
    output: Output = OutputFormat.text,
) -> None:
    """Show how small a slow-down a test of a step finds.

    For tests with the fixture `dlprof`. Each step runs against itself, in pairs of processes. Slow-downs are then put
    into these runs, and judged as the test judges them.

    \b
    tb-dlprof power tests/test_speed.py::test_step
    """
    check_output(output)
    if importlib.util.find_spec("pytest") is None:
        refuse("pytest is missing: pip install pytest")
    with tempfile.TemporaryDirectory() as folder:
        measured = Path(folder) / "runs.json"
        plugin = ["-p", "tb_dlprof_plugin.pytest_plugin", f"--dlprof-power={runs}", f"--dlprof-json={measured}"]
        tell(f"tb-dlprof: each step runs {runs} times against itself")
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *plugin, *tests],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        steps = json.loads(measured.read_text())["steps"] if measured.is_file() else []
    if not steps or done.returncode not in (0, 5):
        tell(done.stdout[-_LONGEST_REPORT:] + done.stderr[-_LONGEST_REPORT:])
        refuse("pytest measured no step; name a test that calls dlprof.not_slower")
    try:
        found = PowerOfTests([power_of(one, limit) for one in steps])
    except ValueError as error:
        refuse(error)
    print_page(
        found,
        Printing(output=output),
        text=lambda: _print(found),
        main=lambda: rows_table(Detected, [row for one in found.tests for row in one.slowdowns]),
    )


def _print(found: PowerOfTests) -> None:
    for one in found.tests:
        say(
            f"{one.test}: {one.step_ms:.3g} ms a step on {one.device}, {one.runs} times against itself.",
            f"Standard deviation of a round {one.round_percent:.1f} %, of two processes {one.processes_percent:.1f} %.",
            "",
        )
        headings = [("Slow-down", "right"), ("slower", "right"), ("cannot say", "right"), ("not slower", "right")]
        rows = [[f"{row.slowdown_percent:g} %", *(f"{share:.0f} %" for share in _shares(row))] for row in one.slowdowns]
        print_table(headings, rows)
        smallest = "none up to double the time" if one.smallest_percent is None else f"{one.smallest_percent:g} %"
        say(
            "",
            f"The smallest slow-down found in {FOUND:g} % of tests, with the limit {one.limit_percent:g} % and "
            f"{one.seconds:g} s for a pair of processes: {smallest}.",
        )


def _shares(row: Detected) -> tuple[float, float, float]:
    return row.slower_percent, row.cannot_say_percent, row.not_slower_percent
