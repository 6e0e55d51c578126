"""Compare what is read of one step from Nsight Systems with what the framework's own profiler recorded of it.

    python lab/formats/agreement.py DIR          # DIR/<kind>/, as record.py leaves them

For each kind and recorder: kernels of a step, kernel time of a step, the shares of it on Tensor Cores and of which that
is unknown, the share of kernel time that lies in an op, and the step that the recording shows against the one timed
without a profiler in the same process. Last, op types whose GPU time differs by more than 2 % of the step's kernel time
between two recorders.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tb_dlprof_plugin.analysis import analyze_ranks
from tb_dlprof_plugin.model.profile import Attribution, KernelKind, Profile, Verdict
from tb_dlprof_plugin.pages.ops import op_rows, times_by_type
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.estimate import step_estimate

RECORDINGS = {
    "nsys": "nsys.sqlite.gz",
    "nsys nodes": "nsys_nodes.sqlite.gz",
    "profiler": "rank0.pt.trace.json.gz",
    "xplane": "plugins/profile/*/*.xplane.pb",
}


@dataclass(frozen=True)
class Step:
    """One step as one recorder shows it; times in milliseconds, shares in percent."""

    kernels: float
    kernel_ms: float
    tensor_core_percent: float
    unknown_percent: float
    in_ops_percent: float
    step_ms: float
    unprofiled_ms: float | None
    by_type: dict[str, float]


def measure(view: ProfileView, unprofiled_ms: float | None) -> Step:
    """The figures of a profile's iterations, a step each."""
    profile = view.profile
    selection = view.selection()
    inside = view.selected_launches(selection)
    kernels = inside & (profile.kernels.kind[profile.launches.kernel] == KernelKind.KERNEL)
    duration = profile.launches.duration_ns
    total = int(duration[kernels].sum())
    verdict = profile.kernels.tensor_core[profile.launches.kernel]
    tensor, unknown = (kernels & (verdict == one) for one in (Verdict.YES, Verdict.UNKNOWN))
    linked = kernels & (profile.launches.attribution != Attribution.UNATTRIBUTED)
    share = 100 / total if total else float("nan")
    return Step(
        kernels=float(kernels.sum()) / selection.count,
        kernel_ms=total / 1e6 / selection.count,
        tensor_core_percent=float(duration[tensor].sum()) * share,
        unknown_percent=float(duration[unknown].sum()) * share,
        in_ops_percent=float(duration[linked].sum()) * share,
        step_ms=step_estimate(view, selection).ns / 1e6,
        unprofiled_ms=unprofiled_ms,
        by_type={
            name: ns / 1e6 / selection.count for name, ns in times_by_type(op_rows(view, selection), True).items()
        },
    )


def read(path: Path) -> list[Profile]:
    """The profiles of a recording; a packed database is unpacked into a temporary directory."""
    if path.name.endswith(".sqlite.gz"):
        with tempfile.TemporaryDirectory() as folder:
            plain = Path(folder) / path.stem
            with gzip.open(path) as source, plain.open("wb") as target:
                shutil.copyfileobj(source, target)
            return analyze_ranks(plain)
    return analyze_ranks(path)


def ranks(folder: Path, pattern: str, files: list[Path]) -> ProfileView:
    """The first rank of a recording, which knows the others: those of its file, and those of files next to it."""
    others = [file for file in folder.glob(pattern.replace("rank0", "rank*")) if file != files[-1]]
    first, *more = [profile for file in (files[-1], *sorted(others)) for profile in read(file)]
    return ProfileView(first, lambda: map(ProfileView, more))


def _truth(folder: Path, recorder: str) -> float | None:
    name = "nsys" if recorder.startswith("nsys") else "profiler"
    path = folder / f"truth.{name}.0.json"
    return json.loads(path.read_text())["unprofiled_step_ms"] if path.exists() else None


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    print(f"{'kind':26s} {'recorder':10s} kernels  kernel ms  on TC    unknown  in ops    step ms  unprofiled  error")
    differences = []
    for folder in sorted(path for path in args.folder.iterdir() if path.is_dir()):
        found: dict[str, Step] = {}
        for recorder, pattern in RECORDINGS.items():
            files = sorted(folder.glob(pattern))
            if not files:
                continue
            try:
                step = found[recorder] = measure(ranks(folder, pattern, files), _truth(folder, recorder))
            except Exception as error:  # A benchmark's table shows what failed and goes on.
                print(f"{folder.name:26s} {recorder:10s} {type(error).__name__}: {error}")
                continue
            off = f"{100 * step.step_ms / step.unprofiled_ms - 100:+5.1f} %" if step.unprofiled_ms else ""
            print(
                f"{folder.name:26s} {recorder:10s} {step.kernels:7.1f} {step.kernel_ms:10.4f} "
                f"{step.tensor_core_percent:5.1f} % {step.unknown_percent:6.1f} % {step.in_ops_percent:6.1f} % "
                f"{step.step_ms:9.3f} {step.unprofiled_ms or float('nan'):9.3f}  {off}"
            )
        differences += _type_differences(folder.name, found)
    print("\nop types that differ by more than 2 % of the step's kernel time:", *differences or ["none"], sep="\n")


def _type_differences(kind: str, found: dict[str, Step]) -> list[str]:
    names = list(found)
    rows = []
    for other in names[1:]:
        a, b = found[names[0]], found[other]
        for name in sorted(a.by_type.keys() | b.by_type.keys()):
            here, there = a.by_type.get(name, 0.0), b.by_type.get(name, 0.0)
            if abs(here - there) > 0.02 * max(a.kernel_ms, b.kernel_ms):
                rows.append(f"{kind:26s} {name:40s} {names[0]} {here:.3f} ms, {other} {there:.3f} ms")
    return rows


if __name__ == "__main__":
    main()
