"""The pytest plugin: the fixture `dlprof`, whose tests fail where a step has become slower.

def test_step(dlprof):
    model, batch = build()
    dlprof.not_slower(lambda: train_step(model, batch), than="main", percent=5)

pytest imports this with each start where the package is installed: it imports nothing of ours until a test asks.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tb_dlprof_plugin.pytest_plugin.fixture import StepTest

VERDICT, BASELINE = "dlprof", "dlprof_baseline"
"""Names of the properties of a test that hold its verdicts and what becomes a baseline, as JSON: xdist brings these to
the process that reports."""
_CLEANUP = pytest.StashKey[contextlib.ExitStack]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the plugin's options."""
    group = parser.getgroup("dlprof", "whether a training step has become slower")
    group.addoption(
        "--dlprof-fail-if-unsure",
        action="store_true",
        help="A step of which nothing can be said fails; else it is skipped.",
    )
    group.addoption("--dlprof-json", metavar="FILE", type=Path, help="Write the verdicts as JSON.")
    group.addoption(
        "--dlprof-update-baselines",
        action="store_true",
        help="Measure the steps that are compared with a JSON file, and add them to it.",
    )
    group.addoption(
        "--dlprof-power",
        metavar="RUNS",
        type=int,
        help="Measure each step against itself so many times: how small a slow-down is found (`tb-dlprof power`).",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Prepare what is removed at the end."""
    config.stash[_CLEANUP] = contextlib.ExitStack()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the checkouts."""
    if _CLEANUP in config.stash:
        config.stash[_CLEANUP].close()


@pytest.fixture
def dlprof(request: pytest.FixtureRequest) -> StepTest:
    """Measures steps: `dlprof.not_slower(step, than="main", percent=5)`."""
    from tb_dlprof_plugin.pytest_plugin.fixture import StepTest

    return StepTest(request.node, request.config.stash[_CLEANUP])


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the verdicts, and write the files."""
    reports = [
        report
        for kind in terminalreporter.stats.values()
        for report in kind
        if isinstance(report, pytest.TestReport) and report.when == "call"
    ]

    def properties(name: str) -> list[Any]:
        return [json.loads(str(text)) for report in reports for key, text in report.user_properties if key == name]

    verdicts = properties(VERDICT)
    if verdicts:
        terminalreporter.section("steps", sep="-")
        for one in verdicts:
            terminalreporter.write_line(f"{one['test']}: {one['sentence']}")
    if config.option.dlprof_json is not None:
        config.option.dlprof_json.write_text(json.dumps({"schema_version": 1, "steps": verdicts}, indent=1) + "\n")
    if measured := properties(BASELINE):
        from tb_dlprof_plugin.pytest_plugin.baselines import add_to_files

        add_to_files(measured)
