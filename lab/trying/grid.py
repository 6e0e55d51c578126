"""The best set that `tb-dlprof try` finds against the best of an exhaustive grid, and planted faults.

    python -m lab.trying.grid --deadline 580 [--budget 60] [--only slow_gpu_transformer gpu_fp32 ...]

Every subset of a grid's remedies runs in a process of its own (`timed_script`), as many of which start together as
there are four CPUs for, and are timed one after the other; the best three a second time, so that no lucky run wins.
`try` gets the same remedies. Its best set is measured in the same way, on the same clock. Then `try`
runs on planted scripts, each with the remedy of the fault among others, as long as there is time.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
from pathlib import Path
from typing import Any

from .planted import GOOD, GRIDS, PLANTED, Script
from .planted_pairs import measure_together
from .try_command import try_result

_OTHERS_GPU = ("tf32", "bf16_autocast", "fused_optimizer", "no_empty_cache")
_OTHERS_CPU = ("fused_optimizer", "loader_workers_1", "no_checkpointing", "slow_switches_off")
"""Tried on each planted script next to the remedy of its fault."""
_OF_GOOD_GPU = ("tf32", "foreach_optimizer", "frozen_garbage", "expandable_segments")
_OF_GOOD_CPU = ("foreach_optimizer", "frozen_garbage", "omp_threads_1")
"""Tried on each good script: what changes it and should gain nothing."""
_LONGEST_TRY_S = 240.0


def try_script(script: Script, remedies: tuple[str, ...], budget_s: float, until: float) -> dict[str, Any]:
    """The JSON of `tb-dlprof try`, or ``{"error": ...}``."""
    options = ["--record", "none", "--budget", f"{budget_s:.0f}s", "--precision", "1.5%"]
    options += ["--remedies", ",".join(remedies)]
    left = min(until - time.monotonic() + 30, _LONGEST_TRY_S)
    return try_result([*options, str(script.path)], max(left, 10))


def _subsets(remedies: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [one for size in range(len(remedies) + 1) for one in itertools.combinations(remedies, size)]


def grid_of(script: Script, remedies: tuple[str, ...], until: float) -> list[dict[str, Any]]:
    """Every subset, then the best three and the unchanged script again."""
    rows: list[dict[str, Any]] = []
    subsets = _subsets(remedies)
    at_once = max(1, min(4, (os.cpu_count() or 1) // 4))
    for first in range(0, len(subsets), at_once):
        if time.monotonic() < until:
            sets = subsets[first : first + at_once]
            found = measure_together([(script.path, one) for one in sets])
            rows += [{"remedies": one, **row} for one, row in zip(sets, found, strict=True)]
    measured = sorted((row for row in rows if "step_ms" in row), key=lambda row: float(row["step_ms"]))
    again = [*measured[:3], *(row for row in measured[3:] if not row["remedies"])]
    if again and time.monotonic() < until:
        second_time = measure_together([(script.path, row["remedies"]) for row in again])
        for row, second in zip(again, second_time, strict=True):
            row["again_ms"] = second.get("step_ms")
    return rows


def _step(row: dict[str, Any]) -> float:
    """The mean of both measurements: the smaller one would prefer the luckier."""
    times = [one for one in (row.get("step_ms"), row.get("again_ms")) if one]
    return sum(times) / len(times) if times else float("inf")


def compare(script: Script, remedies: tuple[str, ...], budget_s: float, until: float) -> dict[str, Any]:
    """`try` and the grid on one script."""
    tried = try_script(script, remedies, budget_s, until)
    print(f"{script.name:28} tried in {tried.get('seconds', 0.0):.0f} s, now the grid", flush=True)
    rows = grid_of(script, remedies, until)
    found: dict[str, Any] = {"script": script.name, "try": tried, "grid": rows}
    base = next((_step(row) for row in rows if not row["remedies"]), float("inf"))
    best = min(rows, key=_step, default=None)
    chosen = set((tried.get("best") or {}).get("remedies") or ())
    own = next((row for row in rows if set(row["remedies"]) == chosen), None)
    if best is not None and own is not None and base < float("inf"):
        found["best_gain"] = 1 - _step(best) / base
        found["try_gain"] = 1 - _step(own) / base
        share = found["try_gain"] / found["best_gain"] if found["best_gain"] > 0 else 1.0
        print(
            f"{script.name:28} grid {'+'.join(best['remedies']) or '-'} {100 * found['best_gain']:.1f} %, "
            f"try {'+'.join(sorted(chosen)) or '-'} {100 * found['try_gain']:.1f} %: {100 * share:.0f} % of it",
            flush=True,
        )
    else:
        print(f"{script.name:28} incomplete: {tried.get('error', 'the time was up')}", flush=True)
    return found


def planted(script: Script, budget_s: float, until: float) -> dict[str, Any]:
    """`try` on a planted or a good script."""
    of_gpu, of_cpu = (_OTHERS_GPU, _OTHERS_CPU) if script.remedies else (_OF_GOOD_GPU, _OF_GOOD_CPU)
    others: tuple[str, ...] = of_gpu if script.needs_gpu else of_cpu
    result = try_script(script, tuple(dict.fromkeys((*script.remedies[:1], *others))), budget_s, until)
    rows = [row for row in result.get("rows", []) if row.get("gain_percent") is not None]
    gains = sorted((row for row in rows if row.get("is_gain")), key=lambda row: -float(row["gain_percent"]))
    first = gains[0]["remedy"] if gains else "-"
    # Where nothing was measured, nothing was found to be good either.
    found = first in script.remedies if script.remedies else bool(rows) and not gains
    print(
        f"{script.name:28} {'found' if found else 'NOT FOUND'}: {first}, {len(rows)} measured, "
        f"{gains[0]['gain_percent'] if gains else 0.0:.1f} % {result.get('error', '')}",
        flush=True,
    )
    return {"script": script.name, "found": found, "try": result}


def main() -> None:
    """See the module's docstring."""
    import torch

    options = argparse.ArgumentParser()
    options.add_argument("--deadline", type=float, default=580.0, help="seconds after which nothing is begun")
    options.add_argument("--budget", type=float, default=60.0, help="seconds of each trial")
    options.add_argument("--only", nargs="*", default=[])
    chosen = options.parse_args()
    until, gpu = time.monotonic() + chosen.deadline, torch.cuda.is_available()
    out = Path(os.environ.get("OUT", "."))
    results: list[dict[str, Any]] = []

    def wanted(script: Script) -> bool:
        named = not chosen.only or script.name in chosen.only
        return script.needs_gpu == gpu and named and time.monotonic() < until - chosen.budget / 2

    for script, remedies in GRIDS.items():
        if wanted(script):
            results.append(compare(script, remedies, chosen.budget, until))
            (out / "trying.json").write_text(json.dumps(results))
    for script in (*PLANTED, *GOOD):
        if wanted(script):
            results.append(planted(script, chosen.budget / 2, until))
            (out / "trying.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main()
