"""What a profile says in a few numbers, for snapshot tests of readers.

    python -m support.snapshots FOLDER

writes ``expected.json`` of the recordings in a folder of ``tests/traces``; look at the difference before you commit it.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tb_dlprof_plugin.analysis import analyze_ranks
from tb_dlprof_plugin.metrics.op_types import op_types
from tb_dlprof_plugin.model.profile import Attribution, KernelKind, Profile, Verdict
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.readers.errors import TraceError

_MOST_TYPES = 12


def snapshot(profile: Profile) -> dict[str, Any]:
    """Counts, sums in ns and words."""
    view = ProfileView(profile)
    launches, kernels = profile.launches, profile.kernels
    durations = launches.duration_ns.tolist()
    activities, attribution, verdicts = Counter(), Counter(), Counter()
    for kernel, how, time in zip(launches.kernel.tolist(), launches.attribution.tolist(), durations, strict=True):
        activities[KernelKind(kernels.kind[kernel]).name] += 1
        attribution[Attribution(how).name] += time
        verdicts[Verdict(kernels.tensor_core[kernel]).name] += time
    found = op_types(view, view.selection())
    by_time = sorted(
        zip(found.names, found.statistics.gpu.total.tolist(), strict=True), key=lambda row: (-row[1], row[0])
    )
    return {
        "rank": profile.source.rank,
        "framework": profile.source.framework,
        "calls": len(profile.calls),
        "activities": dict(sorted(activities.items())),
        "attribution_ns": dict(sorted(attribution.items())),
        "tensor_core_ns": dict(sorted(verdicts.items())),
        "iterations_ns": profile.iterations.duration_ns.tolist(),
        "found_by": profile.iterations.found_by,
        "op_types_ns": [[name[:80], time] for name, time in by_time[:_MOST_TYPES]],
        "shapes": len(profile.input_shapes),
        "gpus": [gpu.name for gpu in profile.system.gpus],
        "notes": {note.code: note.count for note in profile.notes},
    }


def snapshots(path: Path) -> list[dict[str, Any]] | str:
    """Of each rank of a recording, or the error without the path."""
    try:
        return [snapshot(profile) for profile in analyze_ranks(path)]
    except TraceError as error:
        return str(error).replace(str(path), "").strip()


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    made = {one.name: snapshots(one) for one in sorted(folder.glob("*.gz")) if "net.dict" not in one.name}
    (folder / "expected.json").write_text(json.dumps(made, indent=1) + "\n")
