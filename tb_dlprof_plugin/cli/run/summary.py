"""The end of ``tb-dlprof run`` on the terminal: what was recorded, what to change first, how to see more. On stderr."""

from __future__ import annotations

from pathlib import Path

from tb_dlprof_plugin.advice import advise
from tb_dlprof_plugin.advice.finding import FindingItem
from tb_dlprof_plugin.capture.launcher.protocol import ProcessStatus
from tb_dlprof_plugin.cli.printing import UNKNOWN, percent, time
from tb_dlprof_plugin.cli.run.results import Written
from tb_dlprof_plugin.cli.summary import trust_lines, utilization
from tb_dlprof_plugin.cli.terminal import tell
from tb_dlprof_plugin.fleet.job import Job
from tb_dlprof_plugin.metrics.kernels import kernel_totals, time_split
from tb_dlprof_plugin.model.formatting import short_kernel_name
from tb_dlprof_plugin.model.profile import KernelKind
from tb_dlprof_plugin.model.shell_path import shell_path
from tb_dlprof_plugin.pages.overview import overview
from tb_dlprof_plugin.pages.quantities import GPU_BUSY, TENSOR_CORE_UTILIZATION
from tb_dlprof_plugin.pages.recorded_line import recorded_iterations

TOP_FINDINGS = 3
"""Shown at the end of a run, unless all are asked for."""
_TOP_KERNELS = 5


def print_summary(
    written: list[Written], script: str, findings: int | None = TOP_FINDINGS, job: Job | None = None
) -> None:
    """Summary of the lowest rank's profile in a few lines, and of the job where there are several ranks.

    Args:
        written: the profiles, by rank.
        script: its name.
        findings: how many are shown, all where None.
        job: the answers about all ranks.
    """
    view, ref = written[0].view, written[0].ref
    selection = view.selection()
    page = overview(view, ref, selection)
    facts = page.summary
    ranks = "" if len(written) == 1 else f", {len(written)} ranks; rank {ref.rank}:"
    tell()
    tell(f"tb-dlprof: {script}, {recorded_iterations(view)}{ranks}")
    tell(f"  {page.title}")
    tell(f"  {page.headline}")
    figures = [f"{time(facts.average_iteration_ns)} a step, {page.step_words}"]
    if page.has_gpu:
        figures.append(f"{GPU_BUSY.label} {percent(facts.gpu_utilization_percent)}")
        figures.append(f"{TENSOR_CORE_UTILIZATION.label} {utilization(facts)}")
    tell(f"  {', '.join(figures)}")
    for line in trust_lines(page.trust):
        tell(f"  {line}")
    if job is not None:
        tell(f"  All ranks: {job.sentence}")
    found = advise(view, selection).findings
    if not found:
        tell("  No rule found anything to change.")
        return
    shown = found if findings is None else found[:findings]
    tell("  What to change:")
    for number, finding in enumerate(shown, 1):
        tell(f"    {number}. [{finding.severity}] {finding.title}; {_saving(finding)}")
    if len(found) > len(shown):
        tell(f"    ... and {len(found) - len(shown)} more")


def print_totals(written: list[Written], script: str) -> None:
    """Simple mode's three totals and the kernels that take longest."""
    view = written[0].view
    selection = view.selection()
    split = time_split(view, selection)
    wall_ns = int(view.profile.iterations.duration_ns.sum())
    tell()
    tell(f"tb-dlprof: {script}, simple mode, times as recorded")
    tell(f"  Total Wall Clock Time          {time(wall_ns)}")
    tell(f"  Total GPU Time                 {time(split.kernel_ns + split.memory_ns)}")
    unknown = f"  (unknown for another {time(split.unknown_ns)})" if split.unknown_ns else ""
    tell(f"  Total Tensor Core Kernel Time  {time(split.tensor_core_ns)}{unknown}")
    kernels, strings = view.profile.kernels, view.profile.strings
    totals = kernel_totals(view, selection)
    rows = [row for row in totals.total_ns.argsort()[::-1].tolist() if kernels.kind[row] == KernelKind.KERNEL]
    for row in rows[:_TOP_KERNELS]:
        name = short_kernel_name(strings[kernels.name[row]])
        tell(f"    {time(int(totals.total_ns[row])):>9}  {int(totals.calls[row])} times  {name}")


def print_details(written: list[Written], processes: list[ProcessStatus]) -> None:
    """Details of the script's processes, and the notes of the profiles."""
    for process in processes:
        recorded = "" if process.first is None else f", {process.first} to {process.last} recorded"
        model = f", {process.model}" if process.model else ""
        tell(f"  Process {process.pid}, rank {process.rank}: {process.iterations} {process.unit}{recorded}{model}")
    for one in written:
        for note in one.view.profile.notes:
            tell(f"  Note (rank {one.ref.rank}): {note.text}")


def print_where(run_directory: Path, simple: bool = False, ranks: int = 1) -> None:
    """How to see more."""
    logdir, run = shell_path(run_directory.parent), shell_path(run_directory)
    if not simple:
        tell(f"  All of it:  tb-dlprof advise {run}")
    if ranks > 1:
        tell(f"  All ranks:  tb-dlprof distributed {run}")
    tell(f"  In the browser:  tensorboard --logdir {logdir}  and then  http://localhost:6006/#tb_dlprof")


def _saving(finding: FindingItem) -> str:
    if finding.saving is None:
        return f"saving {UNKNOWN}"
    return f"saves about {time(finding.saving.expected_ns)} ({percent(finding.saving.percent)}) a step"
