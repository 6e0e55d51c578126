"""Notes on what a recording lacks, in the words of what recorded it: what to do about it differs by format."""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.analysis.system_info import is_rocm
from tb_dlprof_plugin.model.profile import AMD_NOTE, Attribution, CallKind, Ints, Note
from tb_dlprof_plugin.model.remedies import remedies_of, sentence
from tb_dlprof_plugin.model.timeline import DeviceEvents, HostKind, Timeline


def notes_of(timeline: Timeline, found_by: str, attribution: Ints, unfinished: int, kind: Ints) -> list[Note]:
    """The reader's notes, and those of the analysis.

    Args:
        timeline: the recording.
        found_by: what the iterations were found by, as in `Iterations`.
        attribution: per device event its `Attribution`.
        unfinished: number of steps that were left out.
        kind: per host event its `CallKind`.
    """
    remedies = remedies_of(timeline.format, timeline.framework)
    notes = [Note(note.code, note.text, note.count) for note in timeline.notes]
    if found_by in _STEPS_FOUND_BY:
        code, text = _STEPS_FOUND_BY[found_by]
        notes.append(Note(code, text if text.endswith(".") else sentence(text, remedies.steps)))
    if unfinished:
        notes.append(
            Note("unfinished_step", "The loop ended while the profiler recorded: the step after it is left out.")
        )
    if not (kind == CallKind.MODULE).any() and not any(op.module for op in timeline.stated_ops.values()):
        notes.append(Note("no_modules", sentence("Module names were not recorded", remedies.modules)))
    elif (timeline.host.kind == HostKind.PYTHON_MODULE).any():
        text = "Module paths come from Python frames: classes, numbered; pass model= for names."
        notes.append(Note("modules_from_stacks", text))
    if not len(timeline.device) and not any(note.code == "no_gpu_trace" for note in notes):
        notes.append(Note("no_gpu", "Nothing ran on a GPU; GPU and Tensor Core figures do not apply."))
    notes += _on_attribution(timeline.device, attribution)
    overlapping = _overlapping(timeline.device)
    if overlapping:
        text = (
            "GPU activities overlap on streams that run one at a time, and take more time together than passed there: "
            "times of the recording contradict each other, and shares of them were clipped to 100 %."
        )
        notes.append(Note("contradictory_times", text, overlapping))
    if len(timeline.device) and is_rocm(timeline):
        notes.append(Note(AMD_NOTE, "The GPUs are AMD's: Tensor Core figures do not apply."))
    if not np.any(timeline.host.shapes > 0):
        notes.append(Note("no_shapes", sentence("Input shapes were not recorded", remedies.shapes)))
    return notes


_STEPS_FOUND_BY = {
    "optimizer_step": (
        "steps_from_optimizer",
        "No profiler steps were recorded; each optimizer step ends an iteration.",
    ),
    "none": ("no_steps", "No iterations were found, and the recording counts as one"),
    "program_run": (
        "steps_from_program",
        "No steps are marked; each run of the compiled program with most GPU time, on all GPUs, begins an iteration",
    ),
}
"""Code and text of a note; of one without a full stop the remedy follows."""
_NOT_LINKED = {
    Attribution.ORPHAN: ("orphans", "Kernels were launched before the recording began; they are in no op's time."),
    Attribution.UNATTRIBUTED: ("unattributed", "GPU activities have no recorded op; they are in no op's time."),
}


def _on_attribution(device: DeviceEvents, attribution: Ints) -> list[Note]:
    """Notes on activities whose launching op is not known, or was found by time."""
    notes = [
        Note(code, text, count)
        for kind, (code, text) in _NOT_LINKED.items()
        if (count := int((attribution == kind).sum()))
    ]
    by_time = attribution == Attribution.BY_TIME
    if by_time.any():
        share = 100 * float(device.duration_ns[by_time].sum()) / max(1.0, float(device.duration_ns.sum()))
        text = (
            f"{share:.0f} % of the GPU time was attributed by time: a thread without ranges launched it while another "
            "waited in one."
        )
        notes.append(Note("by_time", text, int(by_time.sum())))
    return notes


def _overlapping(device: DeviceEvents) -> int:
    """How many activities begin before the end of the one in front of them, on streams with more time than passed.

    An overlap alone contradicts nothing: with programmatic dependent launch a kernel begins while the one before ends.
    """
    if not len(device):
        return 0
    order = np.lexsort([device.start_ns, device.stream, device.device])
    start, stop = device.start_ns[order], (device.start_ns + device.duration_ns)[order]
    on, stream = device.device[order], device.stream[order]
    same = (on[1:] == on[:-1]) & (stream[1:] == stream[:-1])
    first = np.flatnonzero(np.concatenate([[True], ~same]))
    passed = np.maximum.reduceat(stop, first) - start[first]
    contradicts = (np.add.reduceat(stop - start, first) > passed) & (stream[first] >= 0)
    begins_inside = np.concatenate([[False], same & (start[1:] < stop[:-1])])
    return int((begins_inside & np.repeat(contradicts, np.diff(first, append=len(order)))).sum())
