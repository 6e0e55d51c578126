"""`tb-dlprof try` on sixteen unchanged scripts: forecast and result of each remedy, and the best set.

    python -m lab.trying.tables [--only mlp gan ...] [--budget 40] [--deadline 580]

The six models of `demo/`, six scripts as public repositories have them, and four that were written when all rules of
`try` stood (`causal_lm`, `segmentation`, `recommender`, `speech`). The baseline of each is recorded, as the forecasts
are made from it. Prints a row per remedy that was measured, the best set, and at the end how far the forecasts were
off. $OUT/tables.json has all.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from .loops import LONG, LOOPS, SCRIPTS
from .try_command import try_result

_MODELS = ("mlp", "lenet", "alexnet", "vgg16", "resnet50", "custom")
_LAST = ("causal_lm", "segmentation", "recommender", "speech")
TABLES: dict[str, tuple[str, ...]] = {
    **{name: ("six_models.py", "--model", name, "--steps", LONG) for name in _MODELS},
    "resnet50 amp": ("six_models.py", "--model", "resnet50", "--precision", "amp-fp16", "--steps", LONG),
    **{name: LOOPS[name] for name in ("imagenet", "gan", "lightning", "accelerate", "transformers")},
    **{name: (f"{name}.py", "--steps", LONG) for name in _LAST},
}
"""Command lines in the folder of the scripts."""
REMEDIES = ("tf32", "bf16_autocast", "channels_last", "fused_optimizer", "cudnn_benchmark", "loader_workers_4")


def try_script(words: tuple[str, ...], folder: Path, budget_s: float, longest_s: float) -> dict[str, Any]:
    """The result of ``tb-dlprof try`` with a recorded baseline, or ``{"error": ...}``."""
    options = ["--record", "baseline", "--logdir", str(folder.parent / "runs"), "--budget", f"{budget_s:.0f}s"]
    options += ["--precision", "1.5%", "--remedies", ",".join(REMEDIES)]
    return try_result([*options, *words], longest_s, folder)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:+.1f}"


def report(name: str, found: dict[str, Any]) -> list[float]:
    """Print its table; the errors of its forecasts in points."""
    best = found.get("best") or {}
    base = found.get("baseline_ms")
    chosen = "+".join(best.get("remedies") or ()) or "none"
    print(
        f"{name}: {'-' if base is None else f'{base:.4g}'} ms, best set {chosen} {_percent(best.get('gain_percent'))} "
        f"({_percent(best.get('low_percent'))} to {_percent(best.get('high_percent'))}) {found.get('error', '')}",
        flush=True,
    )
    errors = []
    for row in found.get("rows") or ():
        gain, forecast = row.get("gain_percent"), row.get("forecast_percent")
        if gain is None:
            if row.get("error"):
                print(f"  {row['remedy']}: {row['error']}")
            continue
        sure = "" if row.get("is_gain") else " ?" if gain > 0 else ""
        print(f"  {row['remedy']:18} {gain:+6.1f}{sure:2} forecast {_percent(forecast):>6}  {row.get('verdict')}")
        errors += [] if forecast is None else [abs(forecast - gain)]
    return errors


def main() -> None:
    """See the module's docstring."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--only", nargs="*", default=list(TABLES))
    options.add_argument("--budget", type=float, default=40.0, help="seconds of each trial")
    options.add_argument("--deadline", type=float, default=3600.0, help="seconds after which no trial begins")
    chosen = options.parse_args()
    until = time.monotonic() + chosen.deadline
    out = Path(os.environ.get("OUT", "."), "tables.json")
    results: dict[str, Any] = {}
    errors: list[float] = []
    for name in chosen.only:
        left = until - time.monotonic()
        if left < chosen.budget:
            print(f"{name}: the time was up")
            continue
        with tempfile.TemporaryDirectory() as made:
            shutil.copytree(SCRIPTS, Path(made, "lab", "run_scripts"))
            # Where six_models.py looks for the models.
            Path(made, "demo").symlink_to(SCRIPTS.parents[1] / "demo")
            began = time.monotonic()
            folder = Path(made, "lab", "run_scripts")
            results[name] = try_script(TABLES[name], folder, chosen.budget, left + 10)
            results[name]["took_s"] = time.monotonic() - began
        errors += report(name, results[name])
        out.write_text(json.dumps(results))
    if errors:
        print(f"{len(errors)} forecasts: median error {statistics.median(errors):.1f} points, worst {max(errors):.1f}")


if __name__ == "__main__":
    main()
