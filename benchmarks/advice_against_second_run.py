"""Does the second run confirm what the advice promised? Holds the estimated savings against the recorded runs.

For each recorded model, the rules look at the FP32 and the TF32 run. What they promise for TF32 and for AMP is compared
with the steps timed without the profiler before and after the change (``demo/recorded/recording.json``). A rule that
stays silent promises less than its threshold. Prints a row per promise, and last how many the second run confirms.

    python benchmarks/advice_against_second_run.py [RECORDED]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import tb_dlprof_plugin
from tb_dlprof_plugin.advice import advise
from tb_dlprof_plugin.advice.thresholds import WORTHWHILE_SAVING_PERCENT
from tb_dlprof_plugin.measures import Frame

CHANGES = (
    ("fp32", "tf32_off", ("tf32",)),
    ("fp32", "amp_not_used", ("amp-fp16", "amp-bf16")),
    ("tf32", "amp_not_used", ("amp-fp16", "amp-bf16")),
)


def main() -> None:
    """Entry point of the script."""
    recorded = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1] / "demo" / "recorded"
    recording = json.loads((recorded / "recording.json").read_text())
    step_ms = {(r["model"], r["precision"]): r["result"]["unprofiled_step_ms"] for r in recording["runs"]}
    print(f"{recording['device']}, torch {recording['torch']}, recorded {recording['date']}; ms per step")
    confirmed = total = 0
    for model in dict.fromkeys(model for model, _ in step_ms):
        for base, rule, candidates in CHANGES:
            (stored,) = tb_dlprof_plugin.read_profiles(recorded / model / base)
            frame = Frame(stored.profile)
            found = next((f for f in advise(frame, frame.selection()).findings if f.rule == rule), None)
            for candidate in candidates:
                measured = step_ms[model, base] - step_ms[model, candidate]
                if found is None or found.saving is None:
                    limit = WORTHWHILE_SAVING_PERCENT / 100 * step_ms[model, base]
                    promise, kept = f"silent: less than {limit:.2f}", measured <= limit
                else:
                    low, high = found.saving.low_ns / 1e6, found.saving.high_ns / 1e6
                    promise = f"{low:.2f} to {high:.2f}, expected {found.saving.expected_ns / 1e6:.2f}"
                    kept = low <= measured <= high
                confirmed += kept
                total += 1
                verdict = "confirmed" if kept else "REFUTED"
                print(f"{model:9} {base} -> {candidate:9} {promise:40} measured {measured:6.2f}  {verdict}")
    print(f"{confirmed} of {total} promises confirmed by the second run")


if __name__ == "__main__":
    main()
