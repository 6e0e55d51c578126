"""What the commands write for other programs."""

from __future__ import annotations

import pytest

from tb_dlprof_plugin.cli.printing import print_csv
from tb_dlprof_plugin.reports.table import Cell, Report


def test_no_spreadsheet_reads_a_name_as_a_formula_and_numbers_keep_their_digits(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows: list[tuple[Cell, ...]] = [("=1+1", 0.123456789, None, 3), ("conv1/conv2d", -1.5, 2.0, -4)]
    print_csv(Report(("name", "ms", "share", "calls"), rows))
    assert capsys.readouterr().out == "name,ms,share,calls\n'=1+1,0.123456789,,3\nconv1/conv2d,-1.5,2.0,-4\n"


def test_a_rate_has_no_decimals_that_only_its_division_made(capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[tuple[Cell, ...]] = [(66_999_999_999_999.99, -1_000_000.4), (999_999.25, float("inf"))]
    print_csv(Report(("rate", "difference"), rows))
    assert capsys.readouterr().out == "rate,difference\n67000000000000,-1000000\n999999.25,inf\n"
