"""What a profiler run says of each kernel launch: name, the op around it, its input types; in order of launch.

Op and types are those that the analysis hands to the classifier: the analysis runs with one that only takes note.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from tb_dlprof_plugin.analysis import analyze_trace, kernel_table
from tb_dlprof_plugin.model.timeline import DeviceKind
from tb_dlprof_plugin.names import KernelClass


@dataclass(frozen=True, slots=True)
class ProfiledLaunch:
    """One launch as a trace shows it."""

    name: str
    op: str
    input_types: str
    duration_ns: int


def read_launches(trace: Path) -> list[ProfiledLaunch]:
    """The kernel launches of a Kineto trace in order of their launching calls; copies and sets are left out.

    Raises:
        TraceError: the trace cannot be read.
    """
    asked: list[tuple[str, str, str]] = []

    def note(name: str, *, op: str | None = None, input_types: str | None = None, **_: object) -> KernelClass:
        asked.append((name, op or "", input_types or ""))
        return KernelClass(None, None, "other", str(len(asked) - 1))

    with mock.patch.object(kernel_table, "classify_kernel", note):
        profile = analyze_trace(trace)
    kernels, launches, calls = profile.kernels, profile.launches, profile.calls
    started = [
        calls.start_ns[call] if call >= 0 else start
        for call, start in zip(launches.call.tolist(), launches.start_ns.tolist(), strict=True)
    ]
    order = sorted(range(len(launches)), key=lambda row: (started[row], launches.start_ns[row]))
    result = []
    for row in order:
        kernel = int(launches.kernel[row])
        if kernels.kind[kernel] == DeviceKind.KERNEL:
            name, op, types = asked[int(profile.strings[kernels.rule[kernel]])]
            result.append(ProfiledLaunch(name, op, types, int(launches.duration_ns[row])))
    return result
