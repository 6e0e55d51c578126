"""Which rules about several ranks fire on recorded jobs, with what they say that each saves.

    python -m lab.ranks.advice tests/data/ranks/{recorded,held_out,trial,settings_recorded}/*/

One line for each job: its step without the profiler as measured (ms), the measured step of the job that it becomes once
repaired, and the findings with their savings. A job whose name ends in "even" must have none.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

from tb_dlprof_plugin.advice import advise
from tb_dlprof_plugin.advice.finding import FindingItem
from tb_dlprof_plugin.advice.topics import TOPICS, topic_of
from tb_dlprof_plugin.cli.open_profile import open_profile

COLUMNS = ("job", "step", "repaired", "findings about several ranks, with their savings (ms)")


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", type=Path, nargs="+", metavar="JOB")
    parser.add_argument("--all", action="store_true", help="the rules of all topics")
    given = parser.parse_args()
    print("| " + " | ".join(COLUMNS) + " |\n|---|--:|--:|---|")
    for job in given.jobs:
        view = open_profile(job)[0]
        found = advise(view, view.selection()).findings
        kept = [one for one in found if given.all or topic_of(one.rule) == TOPICS["multi_gpu"]]
        print(f"| {job.name} | {_step(job)} | {_step(_twin(job))} | {'; '.join(map(_said, kept)) or '-'} |", flush=True)


def _said(finding: FindingItem) -> str:
    saving = finding.saving
    if saving is None:
        return f"{finding.rule}: unknown"
    low, expected, high = (f"{ns / 1e6:.1f}" for ns in (saving.low_ns, saving.expected_ns, saving.high_ns))
    return f"{finding.rule}: {expected} ({low} to {high})"


def _twin(job: Path) -> Path | None:
    truth = _truth(job)
    return job.parent / truth[0]["twin"] if truth and truth[0].get("twin") else None


def _step(job: Path | None) -> str:
    truth = _truth(job)
    return f"{statistics.mean(one['step_ms'] for one in truth):.1f}" if truth else ""


def _truth(job: Path | None) -> list[dict[str, Any]]:
    return [] if job is None else [json.loads(path.read_text()) for path in sorted(job.glob("truth.*.json"))]


if __name__ == "__main__":
    main()
