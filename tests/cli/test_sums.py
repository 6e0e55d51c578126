"""Printed sums: per step unless totals are wanted."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tb_dlprof_plugin.cli.main import app
from tb_dlprof_plugin.cli.sums import sums_of
from tb_dlprof_plugin.pages.common import SelectedRange

RUN = Path(__file__).resolve().parents[2] / "demo" / "recorded" / "lenet" / "fp32"


def _range(count: int, found_by: str = "profiler_step") -> SelectedRange:
    return SelectedRange(0, count - 1, 10, 3, 2 + count, found_by)


def test_sums_are_divided_and_counts_keep_one_decimal() -> None:
    sums = sums_of(_range(10), total=False)
    assert [sums.time(20_000_000), sums.time(None)] == ["2.00 ms", "unknown"]
    assert [sums.count(n) for n in (40, 43, 1, 0, None)] == ["4", "4.3", "0.1", "0", "unknown"]
    assert sums_of(_range(10), total=False).words == "Per step, mean of 10 iterations; --total prints sums."


@pytest.mark.parametrize(
    ("selected", "total", "words"),
    [
        (_range(10), True, "Total of 10 iterations."),
        (_range(1), False, "Of 1 iteration."),
        (_range(4, "none"), False, "Total of the recording: no step was found in it."),
    ],
)
def test_totals_are_printed_where_they_are_wanted_or_no_step_was_found(
    selected: SelectedRange, total: bool, words: str
) -> None:
    sums = sums_of(selected, total)
    assert (sums.time(20_000_000), sums.count(43), sums.words) == ("20.0 ms", "43", words)


@pytest.mark.parametrize(
    "command", ["ops", "op-types", "kernels", "modules", "tensor-cores", "roofline", "launches", "summary"]
)
def test_the_tables_of_a_page_follow_the_option_and_its_json_does_not(command: str) -> None:
    def printed(*options: str) -> str:
        result = CliRunner().invoke(app, [command, str(RUN), *options])
        assert result.exit_code == 0, result.output
        return result.stdout

    per_step, total = printed(), printed("--total")
    assert "Per step, mean of" in per_step
    assert "Total of" in total
    assert per_step != total.replace("Total of", "Per step, mean of")
    assert printed("--format", "json") == printed("--format", "json", "--total")
