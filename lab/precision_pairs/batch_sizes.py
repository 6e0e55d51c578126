"""Forecasts with another batch size, held to the unprofiled steps of ResNet-18 recorded at four.

    python -m lab.precision_pairs.batch_sizes [--markdown]

From each FP32 run the step at each other batch size, in FP32 and in BF16 by autocast. Also printed is what a step in
proportion to the batch would take, from the truth: the FP32 step (for BF16, the forecast's BF16 step) at the recorded
batch size, times the ratio of the two. The package's calibration is used; ResNet-18 is one of the 25 models behind it.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from tb_dlprof_plugin.planning.predict import Forecast, forecast

from .forecast import TARGETS, frame_of, recordings

MODELS = {
    8: "torchvision/resnet18-b8",
    32: "torchvision/resnet18-b32",
    128: "torchvision/resnet18",
    512: "torchvision/resnet18-b512",
}
"""By batch size."""
PRECISIONS = ("fp32", "amp-bf16")


@dataclass(frozen=True)
class Row:
    """One forecast and the truth (ms)."""

    before: int
    after: int
    target: str
    truth_ms: float
    found: Forecast
    proportional_ms: float

    @property
    def predicted_ms(self) -> float:
        return self.found.predicted_ns / 1e6

    @property
    def error(self) -> float:
        return self.predicted_ms / self.truth_ms - 1

    @property
    def proportional_error(self) -> float:
        return self.proportional_ms / self.truth_ms - 1

    @property
    def covered(self) -> bool:
        return self.found.low_ns / 1e6 <= self.truth_ms <= self.found.high_ns / 1e6


def forecasts() -> Iterator[Row]:
    """From each batch size to each other one."""
    runs = {(run.model, run.precision): run for run in recordings()}
    for before, model in MODELS.items():
        view = frame_of(runs[model, "fp32"])
        for target in PRECISIONS:
            precision = TARGETS.get(target, target)
            here = forecast(view, precision).predicted_ns / 1e6 if target != "fp32" else runs[model, "fp32"].step_ms
            for after, other in MODELS.items():
                if after != before:
                    found = forecast(view, precision, batch_size=after)
                    truth = runs[other, target].step_ms
                    yield Row(before, after, target, truth, found, here * after / before)


def host_ms(batch_size: int) -> float:
    """What the CPU of the FP32 run does in a step, waits taken out."""
    (run,) = (run for run in recordings() if (run.model, run.precision) == (MODELS[batch_size], "fp32"))
    return forecast(frame_of(run), "fp32").host_ns / 1e6


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--markdown", action="store_true", help="print a table for the documentation")
    args = parser.parse_args()
    rows = list(forecasts())
    heads = ("batch", "to", "truth ms", "forecast ms", "interval ms", "error", "paced by", "in proportion")
    if args.markdown:
        print("| " + " | ".join(heads) + " |\n|---|---|--:|--:|--:|--:|---|--:|")
    else:
        print("  ".join(f"{head:>16}" for head in heads))
    for row in rows:
        cells = [
            f"{row.before} to {row.after}",
            row.target,
            f"{row.truth_ms:.2f}",
            f"{row.predicted_ms:.2f}",
            f"{row.found.low_ns / 1e6:.1f} to {row.found.high_ns / 1e6:.1f}" + ("" if row.covered else " (!)"),
            f"{100 * row.error:+.0f} %",
            row.found.limited_by,
            f"{100 * row.proportional_error:+.0f} %",
        ]
        print("| " + " | ".join(cells) + " |" if args.markdown else "  ".join(f"{cell:>16}" for cell in cells))
    print("\nThe CPU's own work in the FP32 runs, without the profiler:", end=" ")
    print(", ".join(f"{host_ms(before):.1f} ms with {before}" for before in MODELS))
    for name, chosen in (
        ("larger batches", [row for row in rows if row.after > row.before]),
        ("smaller batches", [row for row in rows if row.after < row.before]),
    ):
        errors = [abs(row.error) for row in chosen]
        others = [abs(row.proportional_error) for row in chosen]
        print(
            f"{name}: {len(chosen)} forecasts; error median {100 * statistics.median(errors):.0f} %, worst "
            f"{100 * max(errors):.0f} %; interval holds the truth in {sum(row.covered for row in chosen)}; in "
            f"proportion: median {100 * statistics.median(others):.0f} %, worst {100 * max(others):.0f} %"
        )


if __name__ == "__main__":
    main()
