"""Compares the savings that the advice predicts with those that the recorded second runs realised.

For each recorded model, the rules look at the FP32 and the TF32 run. What they predict for TF32 and for AMP is compared
with the steps timed without the profiler before and after the change (``recording.json`` next to the runs). A rule that
stays silent predicts less than its threshold. A prediction for BF16 autocast is compared with FP16 as well. Prints a
row per prediction, and last how many the second run confirms.

    python lab/advice_against_second_run.py [RECORDED ...]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import tb_dlprof_plugin
from tb_dlprof_plugin.advice import advise
from tb_dlprof_plugin.planning.forecast_text import SAME
from tb_dlprof_plugin.profile_view import ProfileView

DEMO = Path(__file__).resolve().parents[1] / "demo" / "recorded"
PAIRS = Path(__file__).resolve().parents[1] / "tests" / "data" / "precision_pairs"
SILENT_PERCENT = 100 * SAME
"""A rule that stays silent predicts less than this share of the step."""
CHANGES = (
    ("fp32", "tf32_off", ("tf32",)),
    ("fp32", "amp_not_used", ("amp-fp16", "amp-bf16")),
    ("tf32", "amp_not_used", ("amp-fp16", "amp-bf16")),
)


def step_times(recorded: Path) -> dict[tuple[str, str], float]:
    """Steps without the profiler (ms) by model and precision."""
    return {
        (run.get("model") or run["subject"], run["precision"]): (run.get("result") or run)["unprofiled_step_ms"]
        for run in json.loads((recorded / "recording.json").read_text())["runs"]
    }


def main() -> None:
    """Entry point of the script."""
    chosen = [Path(argument) for argument in sys.argv[1:]] or [DEMO, PAIRS]
    confirmed = total = 0
    for recorded in chosen:
        recording = json.loads((recorded / "recording.json").read_text())
        first = {**recording, **recording["runs"][0].get("result", {})}
        print(f"{first['device']}, torch {first['torch']}; ms per step")
        for kept in check(recorded):
            confirmed += kept
            total += 1
    print(f"{confirmed} of {total} predictions confirmed by the second run")


def check(recorded: Path) -> Iterator[bool]:
    """Prints each prediction and whether the second run confirms it."""
    step_ms = step_times(recorded)
    for model in dict.fromkeys(model for model, _ in step_ms):
        for base, rule, candidates in CHANGES:
            if not (recorded / model / base).is_dir():
                continue  # of some runs the repository has the times alone
            (stored,) = tb_dlprof_plugin.read_profiles(recorded / model / base)
            view = ProfileView(stored.profile)
            found = next((f for f in advise(view, view.selection()).findings if f.rule == rule), None)
            for candidate in candidates:
                measured = step_ms[model, base] - step_ms[model, candidate]
                if found is None or found.saving is None:
                    limit = SILENT_PERCENT / 100 * step_ms[model, base]
                    promise, kept = f"silent: less than {limit:.2f}", measured <= limit
                else:
                    low, high = found.saving.low_ns / 1e6, found.saving.high_ns / 1e6
                    promise = f"{low:.2f} to {high:.2f}, expected {found.saving.expected_ns / 1e6:.2f}"
                    kept = low <= measured <= high
                verdict = "confirmed" if kept else "REFUTED"
                print(f"{model:34} {base} -> {candidate:9} {promise:42} measured {measured:6.2f}  {verdict}")
                yield kept


if __name__ == "__main__":
    main()
