"""Why an allocation of GPU memory failed, who held what, and the smallest change with which it would have fitted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from tb_dlprof_plugin.model.formatting import byte_size
from tb_dlprof_plugin.model.out_of_memory import (
    HELD_BY,
    GpuProcess,
    OomKind,
    OomSummary,
    SizeBytes,
    StackBytes,
    kind_of,
)
from tb_dlprof_plugin.model.plan_request import PlanError
from tb_dlprof_plugin.pages.columns import Column
from tb_dlprof_plugin.planning.memory.plan import planner
from tb_dlprof_plugin.planning.memory.smallest_change import Change, SmallestChange, activations_when, smallest_change
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef

_MOST_ROWS, _MOST_STACKS = 200, 50
_LONGEST_LINE = 500
_MS = 1e6
_NO_RUN = (
    "no run with memory was recorded with it; record some steps that fit, at a smaller batch, with "
    "`tb-dlprof run --memory` or profile_memory=True into the same folder, or name a run with --run."
)


class OomHolder(msgspec.Struct, frozen=True):
    """Bytes in use by holder and module."""

    kind: Annotated[str, Column("Held by", "Parameters, gradients, optimizer states, buffers, or others.")]
    module: Annotated[str, Column("Module", "The module that has them.", missing="–", width=240)]
    bytes: Annotated[int, Column("Bytes", "Of the allocator's blocks.", unit="bytes")]
    percent: Annotated[float, Column("Share", "Of all bytes in use.", unit="percent")]
    blocks: Annotated[int, Column("Blocks", "Number of blocks in use.")]


class OomActivations(msgspec.Struct, frozen=True):
    """Activations of a module by the recorded step."""

    module: Annotated[str, Column("Activations of", "The module that computed them.", width=240)]
    bytes: Annotated[int, Column("Bytes", "By a replay of the recorded step up to the failure.", unit="bytes")]


class OomChange(msgspec.Struct, frozen=True):
    """A change with which it would have fitted, also with the upper end of its interval."""

    change: Annotated[str, Column("Change", "What to change of the configuration that failed.", width=240)]
    limit_bytes: Annotated[int, Column("Needs at most", "The upper end of the smallest limit.", unit="bytes")]
    ms_per_sample: Annotated[float | None, Column("ms/sample", "Of the forecast step.")]
    ms_per_sample_low: float | None
    ms_per_sample_high: float | None
    slower_percent: Annotated[
        float | None,
        Column("Longer by", "Time of a sample against the failed configuration, had it fitted.", unit="percent"),
    ]
    kind: str
    command: Annotated[str, Column("To try it", "A command that plans or runs the change.", width=300)]
    batch_size: int | None
    accumulate: int
    checkpoint: list[str]
    fails_from: int | None
    unknown: str


class OomPage(msgspec.Struct, frozen=True):
    """A failed allocation. ``cannot_say`` is why no change is named, "" where one may be.

    ``unexplained_percent`` is the share of the bytes in use that no name, stack or replay explains.
    """

    headline: str
    kind: OomKind | None
    requested_bytes: int | None
    limit_bytes: int | None
    device_free_bytes: int | None
    allocated_bytes: int
    reserved_bytes: int
    holes_bytes: int
    largest_hole_bytes: int
    module: str
    during: str
    where: list[str]
    caught: int
    batch_size: int | None
    rows: list[OomHolder]
    activations: list[OomActivations]
    stacks: list[StackBytes]
    sizes: list[SizeBytes]
    processes: list[GpuProcess]
    over_time_bytes: list[int]
    unexplained_percent: float
    changes: list[OomChange]
    cannot_say: str
    notes: list[str]


class OomOfRun(msgspec.Struct, frozen=True):
    """The newest failure in a run's directory, None without one."""

    ref: RunRef
    failure: OomPage | None


def oom_page(found: OomSummary, view: ProfileView | None, run: str = "", why_no_run: str = "") -> OomPage:
    """The page of a failure.

    Args:
        found: what is known of it.
        view: a recorded run of the same training, with its memory; None for none.
        run: its directory, for commands.
        why_no_run: why there is none, as a part of a sentence.
    """
    held, changes, cannot_say = found.held, None, ""
    activations: dict[str, int] = {}
    if view is None:
        cannot_say = why_no_run or _NO_RUN
    else:
        try:
            memory = planner(view)
            activations = activations_when(memory, found) or {}
            changes = smallest_change(memory, found)
        except PlanError as error:
            cannot_say = str(error)
    if changes is not None and not changes.changes:
        cannot_say = "no single change that is replayed here fits for sure, not even a batch of one sample."
    total = max(held.allocated, 1)
    unnamed = held.of("unnamed")
    unexplained = found.unnamed_share
    if activations and not held.stacks:
        unexplained = abs(unnamed - sum(activations.values())) / total
    return OomPage(
        headline=_headline(found, kind_of(found), changes),
        kind=kind_of(found),
        requested_bytes=found.requested,
        limit_bytes=found.limit,
        device_free_bytes=found.device_free,
        allocated_bytes=held.allocated,
        reserved_bytes=held.reserved,
        holes_bytes=held.holes,
        largest_hole_bytes=held.largest_hole,
        module=found.module,
        during=found.during,
        where=[line[:_LONGEST_LINE] for line in found.where[:_MOST_STACKS]],
        caught=found.caught,
        batch_size=found.batch_size,
        rows=[
            OomHolder(HELD_BY[row.kind], row.module, row.bytes, round(100 * row.bytes / total, 2), row.blocks)
            for row in held.rows[:_MOST_ROWS]
        ],
        activations=[OomActivations(module or "(no module)", size) for module, size in activations.items()][
            :_MOST_ROWS
        ],
        stacks=held.stacks[:_MOST_STACKS],
        sizes=held.sizes[:_MOST_ROWS],
        processes=found.processes,
        over_time_bytes=[size for _, size in found.over_time],
        unexplained_percent=round(100 * unexplained, 1),
        changes=[] if changes is None else [_row(change, changes, run) for change in changes.changes],
        cannot_say=cannot_say,
        notes=[*found.notes, *_notes(found)],
    )


def view_for(folder: Path) -> tuple[ProfileView | None, str]:
    """The newest recording with memory in a folder, and its directory; without one None and "" ."""
    from tb_dlprof_plugin.store.codec import ProfileError
    from tb_dlprof_plugin.store.logdir import read_profiles

    try:
        profiles = read_profiles(folder)
    except (ProfileError, OSError):
        return None, ""
    for stored in sorted(profiles, key=lambda one: one.profile.source.session, reverse=True):
        if len(stored.profile.memory):
            return ProfileView(stored.profile), str(folder)
    return None, ""


def _headline(found: OomSummary, kind: OomKind | None, changes: SmallestChange | None) -> str:
    held = found.held
    if kind is None or found.requested is None:
        return f"Tensors hold {byte_size(held.allocated)} of {byte_size(held.reserved)} reserved; no request failed."
    asked = f"a request of {byte_size(found.requested)}"
    at = " ".join(
        part
        for part in (
            f"in {found.module}" if found.module else "",
            f"in the {found.during} pass" if found.during in ("forward", "backward") else "",
            "in the optimizer's step" if found.during == "optimizer" else "",
        )
        if part
    )
    failed = f"{asked} failed{f' {at}' if at else ''}"
    limit = f" of {byte_size(found.limit)}" if found.limit is not None else ""
    why = {
        "too much held": f"Too much is held: {failed}, with {byte_size(held.allocated)}{limit} in use.",
        "fragmented": f"Fragmented: {failed} although {byte_size(held.holes + held.whole_free)} are reserved and free, "
        f"in pieces of at most {byte_size(held.largest_hole)}.",
        "another process": f"Something else has the GPU's memory: {failed}, with {byte_size(held.reserved)} reserved "
        f"here and {byte_size(found.device_free or 0)} left{limit}.",
        "one request above everything": f"One request is above everything: {failed}, more than the limit{limit}.",
    }[kind]
    if changes is None or not changes.changes:
        return why
    return f"{why} It would have fitted with {_words(changes.changes[0])}."


def _words(change: Change) -> str:
    request = change.request
    if change.kind == "batch":
        return f"batches of {request.batch_size:,}{_between(request.batch_size or 0, change.fails_from)}"
    if change.kind == "accumulate":
        return f"{request.accumulate} batches of {request.batch_size:,} per step of the optimizer"
    if change.kind == "checkpoint":
        return f"{len(request.checkpoint)} modules checkpointed, up to {request.checkpoint[-1]}"
    if change.kind == "optimizer":
        return "optimizer states in 8 bits"
    if change.kind == "precision":
        return "BF16 autocast"
    return "expandable segments"


def _between(fits: int, fails: int | None) -> str:
    if fails is None:
        return ""
    unsure = f"; of {fits + 1:,} to {fails - 1:,} it is not sure" if fails > fits + 1 else ""
    return f" (not of {fails:,}{unsure})"


def _row(change: Change, of: SmallestChange, run: str) -> OomChange:
    request, time = change.request, change.ns_per_sample
    options = [f"--batch-size {request.batch_size}"]
    if request.accumulate > 1:
        options.append(f"--accumulate {request.accumulate}")
    if request.checkpoint:
        options.append(f"--checkpoint {','.join(request.checkpoint)}")
    if request.optimizer:
        options.append(f"--optimizer {request.optimizer}")
    if request.precision:
        options.append(f"--precision {request.precision}")
    if request.expandable_segments:
        options.append("--expandable-segments")
    command = f"tb-dlprof plan {run or 'RUN'} {' '.join(options)}"
    if request.expandable_segments:
        command = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python SCRIPT.py"
    return OomChange(
        change=_words(change),
        limit_bytes=change.limit,
        ms_per_sample=None if time is None else round(time[0] / _MS, 5),
        ms_per_sample_low=None if time is None else round(time[1] / _MS, 5),
        ms_per_sample_high=None if time is None else round(time[2] / _MS, 5),
        slower_percent=None if time is None or not of.as_was else round(100 * (time[0] / of.as_was - 1), 1),
        kind=change.kind,
        command=command,
        batch_size=request.batch_size,
        accumulate=request.accumulate,
        checkpoint=list(request.checkpoint),
        fails_from=change.fails_from,
        unknown=change.why,
    )


def _notes(found: OomSummary) -> list[str]:
    notes = []
    if found.caught:
        notes.append(f"{found.caught} failures before it were caught, as of a workspace that a library can do without.")
    if found.held.left_out:
        notes.append(f"Rows of {byte_size(found.held.left_out)} are left out.")
    if found.retries:
        notes.append(f"The allocator had given back its cache {found.retries} times.")
    return notes
