"""The outcomes of the rules on recorded runs, as rows of text: for the terminal and for the docs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

from tb_dlprof_plugin.advice.finding import SavingItem
from tb_dlprof_plugin.advice.topics import sort_key

from .held import Held, Run

DEMO = Path(__file__).resolve().parents[2] / "demo" / "recorded"

PLANTED_COLUMNS = (
    "rule", "finds its fault", "silent once fixed", "stated, ms a step", "realised, ms", "in interval", "others",
)  # fmt: skip
DEMO_COLUMNS = ("run", "findings, with what each should save, ms a step")


def planted_row(one: Held, link: Callable[[str], str] = str) -> tuple[str, ...]:
    """``link`` makes the text for a rule's name. "others" are the other rules that fire on the fixed training."""
    saving = one.finding.saving if one.finding else None
    return (
        link(one.rule),
        _yes(one.fires),
        _yes(one.silent),
        interval_text(saving) if saving else "no estimate" if one.fires else "",
        "" if one.realised_ns is None else f"{one.realised_ns / 1e6:.2f}",
        "" if one.within is None else _yes(one.within),
        ", ".join(map(link, one.others)),
    )


def totals(rows: Sequence[Held]) -> str:
    """The last line below the table."""
    judged = [one for one in rows if one.within is not None]
    kept = sum(bool(one.within) for one in judged)
    quiet = sum(not one.others for one in rows)
    found, silent = sum(one.fires for one in rows), sum(one.silent for one in rows)
    return (
        f"{len(rows)} faults planted: {found} found, {silent} rules silent once fixed, {kept} of {len(judged)} "
        f"savings realised within their interval; on {quiet} of {len(rows)} fixed trainings no other rule fires."
    )


def demo_rows(link: Callable[[str], str] = str, demo: Path = DEMO) -> list[tuple[str, str]]:
    """A row for each recorded run of the demo's six models."""
    rows = []
    for directory in sorted({path.parent for path in demo.glob("*/*/*tfevents*")}):
        found = Run(directory).advice.findings
        texts = [
            f"{link(one.rule)} {interval_text(one.saving) if one.saving else '(no estimate)'}"
            for one in sorted(found, key=lambda one: sort_key(one.rule))
        ]
        rows.append((directory.relative_to(demo).as_posix(), "; ".join(texts) or "none"))
    return rows


def interval_text(saving: SavingItem) -> str:
    """A saving in ms, with its interval."""
    return f"{saving.expected_ns / 1e6:.2f} ({saving.low_ns / 1e6:.2f} to {saving.high_ns / 1e6:.2f})"


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; bars in cells are escaped."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def plain(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in columns as wide as their widest cell."""
    lines = [columns, *rows]
    widths = [max(len(cell) for cell in column) for column in itertools.zip_longest(*lines, fillvalue="")]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _yes(value: bool) -> str:
    return "yes" if value else "**no**"
