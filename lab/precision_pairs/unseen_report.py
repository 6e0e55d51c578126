"""Forecasts and shown steps of the models of `unseen`, held to their timed steps.

    python -m lab.precision_pairs.unseen_report DIRECTORY ...

A DIRECTORY is an unpacked half: recording.json, events/ and traces/. Forecasts are made from the FP32 recording of the
hook alone; bare traces are read as `tb-dlprof import` does.
"""

from __future__ import annotations

import argparse
import json
import lzma
import statistics
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tb_dlprof_plugin.analysis.build import analyze_trace
from tb_dlprof_plugin.planning import ForecastError
from tb_dlprof_plugin.planning.op_times import OpTimes, read_op_times
from tb_dlprof_plugin.planning.predict import forecast
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.estimate import step_estimate
from tb_dlprof_plugin.store.logdir import read_profiles

from .forecast import TARGETS, ForecastAndTruth

_DIFFERS = 0.05
"""A true difference beyond which the direction has to be right, or said to be unknown."""


def is_wrong(row: ForecastAndTruth) -> bool:
    """Whether it says faster where the truth is slower by more than `_DIFFERS`, or the other way round."""
    clear = abs(row.true_speedup - 1) > _DIFFERS
    return clear and row.found.direction == ("slower" if row.true_speedup > 1 else "faster")


def truths(directory: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Runs that were timed, by model and precision."""
    runs = json.loads((directory / "recording.json").read_text())["runs"]
    return {(run["subject"], run["precision"]): run for run in runs if "error" not in run}


def forecasts(directory: Path, op_times: OpTimes | None) -> Iterator[ForecastAndTruth | str]:
    """Of each model in each other precision; where there is no forecast, which one, and why."""
    runs = truths(directory)
    for (model, precision), run in runs.items():
        stored = directory / "events" / model / "fp32"
        if precision != "fp32" or not stored.is_dir():
            continue
        view = ProfileView(read_profiles(stored)[-1].profile)
        for name, target in TARGETS.items():
            if (model, name) in runs:
                times = run["unprofiled_step_ms"], runs[model, name]["unprofiled_step_ms"]
                try:
                    yield ForecastAndTruth(model, name, *times, forecast(view, target, op_times=op_times))
                except ForecastError as error:
                    yield f"{model:28} {name:9} {times[0]:7.2f} to {times[1]:7.2f} ms  refused: {error}"


def bare_steps(directory: Path) -> Iterator[tuple[str, float, Any]]:
    """Name, true step (ms) and shown step of each bare trace: the mean of the turns before and after it."""
    for (model, precision), run in truths(directory).items():
        packed = directory / "traces" / model / f"{precision}.pt.trace.json.xz"
        if not packed.exists():
            continue
        with tempfile.TemporaryDirectory() as scratch:
            trace = Path(scratch) / "bare.pt.trace.json"
            trace.write_bytes(lzma.decompress(packed.read_bytes()))
            view = ProfileView(analyze_trace(trace))
        truth = statistics.mean(run["unprofiled_turns_ms"][1:])
        yield f"{model}/{precision}", truth, step_estimate(view, view.selection())


def hook_steps(directory: Path) -> Iterator[tuple[str, float, Any]]:
    """The same of each recording of the hook: the turns around it are the first two."""
    for (model, precision), run in truths(directory).items():
        stored = directory / "events" / model / precision
        if stored.is_dir():
            view = ProfileView(read_profiles(stored)[-1].profile)
            truth = statistics.mean(run["unprofiled_turns_ms"][:2])
            yield f"{model}/{precision}", truth, step_estimate(view, view.selection())


def _print_forecasts(rows: list[ForecastAndTruth | str]) -> None:
    made = []
    for row in rows:
        if isinstance(row, str):
            print(row)
            continue
        made.append(row)
        least, most = row.found.speedup_interval
        print(
            f"{row.model:28} {row.target:9} {row.before_ms:7.2f} to {row.truth_ms:7.2f} ms ({row.true_speedup:.2f})  "
            f"{row.predicted_ms:7.2f} ({row.found.low_ns / 1e6:.1f} to "
            f"{row.found.high_ns / 1e6:.1f}{'' if row.covered else ' (!)'}) {100 * row.error:+6.1f} %  "
            f"{row.found.speedup:.2f} ({least:.2f} to {most:.2f}) {row.found.direction}, {row.found.limited_by}"
            f"{' WRONG' if is_wrong(row) else ''}"
        )
    for name, chosen in (
        ("all", made),
        *((target, [row for row in made if row.target == target]) for target in TARGETS),
        ("paced by the GPU", [row for row in made if row.found.limited_by == "gpu"]),
        ("paced by the CPU", [row for row in made if row.found.limited_by != "gpu"]),
    ):
        if chosen:
            errors = [abs(row.error) for row in chosen]
            print(
                f"{name}: {len(chosen)} forecasts; error median {100 * statistics.median(errors):.1f} %, worst "
                f"{100 * max(errors):.0f} %; interval true in {sum(row.covered for row in chosen)}; direction wrong in "
                f"{sum(is_wrong(row) for row in chosen)}"
            )
    print(f"refused: {len(rows) - len(made)}")


def _print_steps(name: str, steps: Iterable[tuple[str, float, Any]]) -> None:
    errors, holds, widths = [], [], []
    for run, truth, step in steps:
        errors.append(step.ns / 1e6 / truth - 1)
        holds.append(step.low_ns / 1e6 <= truth <= step.high_ns / 1e6)
        widths.append((step.high_ns - step.low_ns) / step.ns)
        print(
            f"{run:36} true {truth:7.2f} ms, shown {step.ns / 1e6:7.2f} ({step.low_ns / 1e6:.2f} to "
            f"{step.high_ns / 1e6:.2f}) {100 * errors[-1]:+.0f} % {step.source}{'' if holds[-1] else '  truth outside'}"
        )
    if errors:
        sizes = [abs(error) for error in errors]
        print(
            f"{name}: {len(errors)}; error median {100 * statistics.median(sizes):.1f} %, worst "
            f"{100 * max(sizes):.0f} %, interval true in {sum(holds)}, "
            f"its width {100 * statistics.median(widths):.0f} % at the median"
        )


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("directories", nargs="+", type=Path)
    parser.add_argument("--op-times", type=Path, help="a table of `lab.op_speed.fit` other than the package's")
    parser.add_argument("--only", choices=("forecasts", "hook", "bare"))
    args = parser.parse_args()
    op_times = read_op_times(args.op_times.read_bytes()) if args.op_times else None
    if args.only in (None, "forecasts"):
        _print_forecasts([row for directory in args.directories for row in forecasts(directory, op_times)])
    if args.only in (None, "hook"):
        _print_steps("by the hook", (step for directory in args.directories for step in hook_steps(directory)))
    if args.only in (None, "bare"):
        _print_steps("bare traces", (step for directory in args.directories for step in bare_steps(directory)))


if __name__ == "__main__":
    main()
