"""Forecasts from the FP32 runs (or those in TF32) alone, held to the unprofiled steps of the runs in other precisions.

    python -m lab.precision_pairs.forecast [--base tf32] [--markdown] [--op-times TABLE]

The op times that forecasts are made with come from single ops, and from no model (`lab/op_speed`). What comes
from models is what share of the CPU's time is the recorder's (`simulation.recorder_cost`). Each forecast is printed
with the rule of Daydream (Zhu et al., USENIX ATC 2020, section 5.2): with mixed precision, kernels of matrix products
and convolutions get 3 times as fast and all others 2 times. (It knows one mixed precision, and nothing of TF32.)
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tb_dlprof_plugin.planning.op_times import OpTimes, read_op_times
from tb_dlprof_plugin.planning.predict import Forecast, forecast
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.simulation.change import Change
from tb_dlprof_plugin.simulation.simulator import simulation
from tb_dlprof_plugin.store.logdir import read_profiles

ROOT = Path(__file__).resolve().parents[2]
PAIRS = ROOT / "tests" / "data" / "precision_pairs"
DEMO = ROOT / "demo" / "recorded"
TARGETS = {"tf32": "tf32", "amp-fp16": "fp16", "amp-bf16": "bf16"}
SAME = 0.03
"""Steps that differ by less are neither faster nor slower: repeated timings of one CPU-paced run differ by more."""


@dataclass(frozen=True)
class Recorded:
    """One run: where its profile is, and its step without the profiler (ms)."""

    model: str
    precision: str
    directory: Path
    step_ms: float

    @property
    def stored(self) -> bool:
        """Whether its event file is in the repository: of some runs only the times are, which forecasts are held to."""
        return self.directory.is_dir()


@dataclass(frozen=True)
class ForecastAndTruth:
    """A forecast of one model, and the true steps (ms) before and after."""

    model: str
    target: str
    before_ms: float
    truth_ms: float
    found: Forecast

    @property
    def predicted_ms(self) -> float:
        return self.found.predicted_ns / 1e6

    @property
    def error(self) -> float:
        return self.predicted_ms / self.truth_ms - 1

    @property
    def covered(self) -> bool:
        return self.found.low_ns / 1e6 <= self.truth_ms <= self.found.high_ns / 1e6

    @property
    def true_speedup(self) -> float:
        return self.before_ms / self.truth_ms


@dataclass(frozen=True)
class Row(ForecastAndTruth):
    """The same, with the step by Daydream's rule (ms)."""

    daydream_ms: float

    @property
    def right_side(self) -> bool:
        """Whether it says faster where the truth is faster, by however little."""
        return (self.truth_ms < self.before_ms) == (self.found.speedup > 1)

    @property
    def right_direction(self) -> bool:
        """The same, but not where the truth or the forecast is hardly a difference."""
        return _direction(self.true_speedup) * _direction(self.found.speedup) >= 0


def _direction(speedup: float) -> int:
    return 0 if abs(speedup - 1) < SAME else 1 if speedup > 1 else -1


def recordings() -> Iterator[Recorded]:
    """The demo's six models and the others."""
    for run in json.loads((DEMO / "recording.json").read_text())["runs"]:
        directory = DEMO / run["model"] / run["precision"]
        yield Recorded(f"demo/{run['model']}", run["precision"], directory, run["result"]["unprofiled_step_ms"])
    for run in json.loads((PAIRS / "recording.json").read_text())["runs"]:
        yield Recorded(
            run["subject"], run["precision"], PAIRS / run["subject"] / run["precision"], run["unprofiled_step_ms"]
        )


def frame_of(run: Recorded) -> ProfileView:
    """The run's only profile."""
    return ProfileView(read_profiles(run.directory)[0].profile)


def daydream_ms(view: ProfileView) -> float:
    """The step with Daydream's rule in our replay, so that only the kernels' times differ."""
    profile = view.profile
    kernels = profile.launches.kernel
    is_product = np.isin(
        profile.kernels.family[kernels], [i for i, s in enumerate(profile.strings) if s in ("gemm", "convolution")]
    )
    change = Change(gpu=1.0 / np.where(is_product, 3.0, 2.0))
    return simulation(view, view.selection()).step([change]).ns / 1e6


def forecasts(models: Container[str] | None = None, op_times: OpTimes | None = None, base: str = "fp32") -> list[Row]:
    """All forecasts, or those of some models, from runs in ``base``."""
    runs = list(recordings())
    rows = []
    truths = {(run.model, run.precision): run for run in runs}
    for run in runs:
        if run.precision != base or not run.stored or (models is not None and run.model not in models):
            continue
        view = frame_of(run)
        by_rule = daydream_ms(view)
        for name, precision in TARGETS.items():
            if name == base:
                continue
            truth = truths[run.model, name]
            found = forecast(view, precision, op_times=op_times)
            rows.append(Row(run.model, name, run.step_ms, truth.step_ms, found, by_rule))
    return rows


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--markdown", action="store_true", help="print tables for the documentation")
    parser.add_argument("--op-times", type=Path, help="a table of `lab.op_speed.fit` other than the package's")
    parser.add_argument("--base", choices=("fp32", "tf32"), default="fp32", help="what the runs computed in")
    args = parser.parse_args()
    op_times = read_op_times(args.op_times.read_bytes()) if args.op_times else None
    rows = forecasts(op_times=op_times, base=args.base)
    bar = "| " if args.markdown else ""
    between = " | " if args.markdown else "  "
    heads = ("model", "to", "base ms", "truth ms", "forecast ms", "interval ms", "error", "Daydream ms", "error")
    if args.markdown:
        print("| " + " | ".join(heads) + " |\n|---|---|--:|--:|--:|--:|--:|--:|--:|")
    else:
        print(f"{heads[0]:36} {heads[1]:9} " + "  ".join(f"{head:>13}" for head in heads[2:]))
    for row in rows:
        interval = f"{row.found.low_ns / 1e6:.1f} to {row.found.high_ns / 1e6:.1f}" + ("" if row.covered else " (!)")
        by_rule = "" if row.target == "tf32" else f"{row.daydream_ms:.2f}"
        rule_error = "" if row.target == "tf32" else f"{100 * (row.daydream_ms / row.truth_ms - 1):+.0f} %"
        cells = [
            f"{row.before_ms:.2f}",
            f"{row.truth_ms:.2f}",
            f"{row.predicted_ms:.2f}",
            interval,
            f"{100 * row.error:+.1f} %",
            by_rule,
            rule_error,
        ]
        if args.markdown:
            print(bar + between.join([row.model, row.target, *cells]) + " |")
        else:
            print(f"{row.model:36} {row.target:9} " + "  ".join(f"{cell:>13}" for cell in cells))
    print()
    for name, chosen in (
        ("all", rows),
        *((target, [row for row in rows if row.target == target]) for target in TARGETS if target != args.base),
        ("AMP", [row for row in rows if row.target != "tf32"]),
        ("paced by the GPU", [row for row in rows if row.found.limited_by == "gpu"]),
        ("paced by the CPU", [row for row in rows if row.found.limited_by == "cpu"]),
    ):
        _summary(name, chosen)


def _summary(name: str, rows: list[Row]) -> None:
    errors = [abs(row.error) for row in rows]
    amp = [row for row in rows if row.target != "tf32"]
    by_rule = [abs(row.daydream_ms / row.truth_ms - 1) for row in amp]
    wrong = [f"{row.model}/{row.target}" for row in rows if not row.right_direction]
    print(
        f"{name}: {len(rows)} forecasts; error median {100 * statistics.median(errors):.1f} %, "
        f"worst {100 * max(errors):.1f} %, {sum(e <= 0.2 for e in errors)} within 20 %; "
        f"interval holds the truth in {sum(row.covered for row in rows)}; "
        f"direction wrong: {', '.join(wrong) or 'none'}, "
        f"counting differences below {100 * SAME:.0f} % too: {sum(not row.right_side for row in rows)}"
        + (
            f"; Daydream's rule: median {100 * statistics.median(by_rule):.1f} %, worst {100 * max(by_rule):.1f} %"
            if amp
            else ""
        )
    )


if __name__ == "__main__":
    main()
