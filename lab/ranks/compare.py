"""What the answers say about recorded jobs with a planted cause, next to what was planted and what the even twin took.

    python -m lab.ranks.compare DIRECTORY

DIRECTORY has a folder for each job, as `lab.ranks.record` writes it: event files or traces, and `truth.N.json`.
A row per job: the planted rank and cause, the first one that is named, whether it is certain, the job's step, the
step if the named rank is repaired, what the even twin took without a profiler, and by how much the answer is off.
"""

from __future__ import annotations

import argparse
import json
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tb_dlprof_plugin.fleet.answers.job_of import job_of
from tb_dlprof_plugin.fleet.job import Job
from tb_dlprof_plugin.fleet.job_files import read_job

RECORDINGS = ("*.tfevents.*", "*.pt.trace.json*")
"""An even twin may be there with its truth alone."""


@dataclass(frozen=True)
class Row:
    """A job and its truth.

    Attributes:
        rank, cause: planted; the rank is None where all ranks have the cause, the cause "" where nothing is planted.
        named_rank, named_cause: first of the answer; None and "" where no rank owes anything.
        step_ms: without the profiler, as the answer says. measured_ms: as the same processes took.
        repaired_ms: with the first rank repaired.
        twin_ms: of the even job as measured; None for jobs without a twin, or whose twin is not in the directory.
    """

    name: str
    rank: int | None
    cause: str
    named_rank: int | None
    named_cause: str
    certain: bool
    step_ms: float | None
    measured_ms: float
    repaired_ms: float | None
    twin_ms: float | None

    @property
    def right(self) -> bool:
        """Whether what is planted is named with certainty, and nothing where nothing is planted."""
        if not self.cause:
            return not self.certain
        # All ranks have a cause without a rank: any of them may be named.
        here = self.rank is None or self.named_rank == self.rank
        return self.certain and here and self.named_cause == self.cause

    @property
    def share_error_percent(self) -> float | None:
        """Of the share of the step that is left: a machine's hosts slow down by up to 20 % in a minute."""
        if self.repaired_ms is None or self.twin_ms is None or not self.step_ms:
            return None
        return 100 * (self.repaired_ms / self.step_ms * self.measured_ms / self.twin_ms - 1)

    @property
    def error_percent(self) -> float | None:
        """Of the step with the rank repaired."""
        if self.repaired_ms is None or self.twin_ms is None:
            return None
        return 100 * (self.repaired_ms / self.twin_ms - 1)


def truths(folder: Path) -> list[dict[str, Any]]:
    """What the ranks of a job wrote, by rank."""
    return [json.loads(file.read_text()) for file in sorted(folder.glob("truth.*.json"))]


def measured_ms(found: list[dict[str, Any]], cause: str = "") -> float:
    """The step of the ranks without a profiler: the median of steps, the mean where only some steps have the cause."""
    figure = "mean_ms" if cause == "garbage_collection" else "step_ms"
    return statistics.mean(one[figure] for one in found)


def row_of(folder: Path, job: Job | None = None) -> Row:
    """A job compared with its truth; its twin lies next to it."""
    truth = truths(folder)
    planted = truth[0]
    job = job or job_of(read_job([folder]).facts)
    twin = truths(folder.parent / planted["twin"]) if planted["twin"] else []
    first = job.delays[0] if job.delays else None
    return Row(
        name=folder.name,
        rank=planted["rank"] if planted["cause"] else None,
        cause=planted["cause"],
        named_rank=first.rank if first else None,
        named_cause=first.cause if first else "",
        certain=bool(first and first.certain),
        step_ms=job.step.ms if job.step else None,
        measured_ms=measured_ms(truth, planted["cause"]),
        repaired_ms=job.step.ms - first.saving_ms if job.step and first else None,
        twin_ms=measured_ms(twin) * _layers(planted) if twin else None,
    )


def _layers(planted: dict[str, Any]) -> float:
    """Layers of a job over those of its even twin: stages made even keep all of them."""
    return 1 + planted["options"].get("extra", 0) / planted["size"]["layers"]


def _print(rows: list[Row]) -> None:
    head = ("job", "planted", "named first", "certain", "step", "measured", "repaired", "twin", "error", "of share")
    form = "{:<16} {:<27} {:<27} {:<8} {:>8} {:>9} {:>9} {:>8} {:>8} {:>8}"
    print(form.format(*head))
    for row in rows:
        print(
            form.format(
                row.name,
                _who(row.rank, row.cause),
                _who(row.named_rank, row.named_cause),
                "yes" if row.certain else "no",
                *(_ms(value) for value in (row.step_ms, row.measured_ms, row.repaired_ms, row.twin_ms)),
                *(_percent(value) for value in (row.error_percent, row.share_error_percent)),
            )
        )
    planted = [row for row in rows if row.cause]
    even = [row for row in rows if not row.cause]
    print(
        f"Named with certainty: {sum(row.right for row in planted)} of {len(planted)}; "
        f"silent where nothing is planted: {sum(row.right for row in even)} of {len(even)}. Times in ms."
    )


def _who(rank: int | None, cause: str) -> str:
    if not cause:
        return ""
    return cause if rank is None else f"rank {rank}, {cause}"


def _percent(value: float | None) -> str:
    return "" if value is None else f"{value:+.1f} %"


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    arguments = parser.parse_args()
    recorded = {file.parent for pattern in RECORDINGS for file in arguments.directory.glob(f"*/{pattern}")}
    folders = sorted(folder for folder in recorded if truths(folder))
    if not folders:
        parser.error("no recorded job with truth.N.json in the directory")
    _print([row_of(folder) for folder in folders])


if __name__ == "__main__":
    main()
