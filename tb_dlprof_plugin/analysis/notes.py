"""Notes on what a recording lacks, in the words of what recorded it: what to do about it differs by format."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.analysis.system_info import is_rocm
from tb_dlprof_plugin.model.profile import Attribution, CallKind, Ints, Note
from tb_dlprof_plugin.model.timeline import HostKind, Timeline


@dataclass(frozen=True, slots=True)
class Remedies:
    """What to do where something was not recorded; "" where nothing can be done."""

    steps: str
    modules: str
    shapes: str


_KINETO = Remedies("Call prof.step().", "pass model= to the hook.", "profile with record_shapes=True.")
_EMITTED = Remedies(
    'Push a range "iteration N" around each.',
    "record with the hook, or push a range around each module.",
    "pass record_shapes=True to emit_nvtx.",
)
_RANGES = Remedies('Push an NVTX range "iteration N" around each.', "push an NVTX range around each.", "")
_BY_FORMAT = {"kineto": _KINETO, "nsys": _RANGES, "nvprof": _RANGES}


def remedies(timeline: Timeline) -> Remedies:
    """Those of the timeline's format and framework."""
    if timeline.format in ("nsys", "nvprof") and timeline.framework == "pytorch":
        return _EMITTED
    return _BY_FORMAT.get(timeline.format, Remedies("", "", ""))


def notes_of(timeline: Timeline, found_by: str, attribution: Ints, unfinished: int, kind: Ints) -> list[Note]:
    """The reader's notes, and those of the analysis.

    Args:
        timeline: the recording.
        found_by: what the iterations were found by, as in `Iterations`.
        attribution: per device event its `Attribution`.
        unfinished: number of steps that were left out.
        kind: per host event its `CallKind`.
    """
    what_to_do = remedies(timeline)
    notes = [Note(n.code, n.text, n.count) for n in timeline.notes]
    if found_by == "optimizer_step":
        notes.append(
            Note("steps_from_optimizer", "No profiler steps were recorded; each optimizer step ends an iteration.")
        )
    elif found_by == "none":
        text = "No iterations were found: the recording counts as one."
        notes.append(Note("no_steps", f"{text} {what_to_do.steps}".rstrip()))
    if unfinished:
        notes.append(
            Note("unfinished_step", "The loop ended while the profiler recorded: the step after it is left out.")
        )
    if not (kind == CallKind.MODULE).any():
        notes.append(Note("no_modules", _with_remedy("Module names were not recorded", what_to_do.modules)))
    elif (timeline.host.kind == HostKind.PYTHON_MODULE).any():
        notes.append(
            Note(
                "modules_from_stacks", "Module paths come from Python frames: classes, numbered; pass model= for names."
            )
        )
    if not len(timeline.device) and not any(note.code == "no_gpu_trace" for note in notes):
        notes.append(Note("no_gpu", "Nothing ran on a GPU; GPU and Tensor Core figures do not apply."))
    orphans = int((attribution == Attribution.ORPHAN).sum())
    if orphans:
        notes.append(
            Note("orphans", "Kernels were launched before the recording began; they are in no op's time.", orphans)
        )
    lost = int((attribution == Attribution.UNATTRIBUTED).sum())
    if lost:
        notes.append(Note("unattributed", "GPU activities have no recorded op; they are in no op's time.", lost))
    by_time = int((attribution == Attribution.BY_TIME).sum())
    if by_time:
        share = 100 * float(timeline.device.duration_ns[attribution == Attribution.BY_TIME].sum())
        share /= max(1.0, float(timeline.device.duration_ns.sum()))
        text = (
            f"{share:.0f} % of the GPU time was attributed by time: a thread without ranges launched it while another "
            "waited in one."
        )
        notes.append(Note("by_time", text, by_time))
    if len(timeline.device) and is_rocm(timeline):
        notes.append(Note("rocm", "The GPUs are AMD's: Tensor Core figures do not apply."))
    if not np.any(timeline.host.shapes > 0):
        notes.append(Note("no_shapes", _with_remedy("Input shapes were not recorded", what_to_do.shapes)))
    return notes


def _with_remedy(text: str, remedy: str) -> str:
    return f"{text}; {remedy}" if remedy else f"{text}."
