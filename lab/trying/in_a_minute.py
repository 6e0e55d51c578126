"""What `tb-dlprof try --budget 60s` finds on scripts that it was not written for, against sets chosen by hand.

    python -m lab.trying.in_a_minute [--only gpu_gan ...] [--budget 60] [--deadline 520] [--held-out] [--record DIR]

Of each script, first `try` with all remedies; then, alone on the machine, the sets of `unseen.BY_HAND` and the one that
`try` has found, in processes of their own that start together and are timed in turns. A script is begun only where both
fit into the deadline. A short table comes last: gain by hand and of the set of `try` on the same clock, their ratio,
and seconds from the script's first step to the end; then forecasts with what was measured. $OUT/in_a_minute.json has
all; with ``--record`` the unchanged script is recorded after each trial, for the forecasts.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from .planted_pairs import measure_together
from .try_command import try_result
from .unseen import BY_HAND, HELD_OUT, path_of

_MORE_S = 90.0
"""Of a start, after which a trial is ended as by Ctrl-C."""
_START_S, _HAND_S = 30.0, 60.0
"""That a start and the sets by hand take at most, until some were measured."""


def tried(name: str, budget_s: float, logdir: Path | None) -> dict[str, Any]:
    """The JSON of `try`, with ``wall_s``."""
    record = ["--record", "none"] if logdir is None else ["--record", "baseline", "--logdir", str(logdir)]
    began = time.monotonic()
    found = try_result([*record, "--budget", f"{budget_s:.0f}s", str(path_of(name))], budget_s + _MORE_S)
    found["wall_s"] = time.monotonic() - began
    best = found.get("best") or {}
    print(
        f"{name}: {'+'.join(best.get('remedies') or ()) or 'nothing'} {best.get('gain_percent') or 0.0:.1f} %, "
        f"{found['wall_s']:.0f} s in all {found.get('error', '')}",
        flush=True,
    )
    for row in (*found.get("sets", ()), *found.get("rows", ())):
        if row.get("gain_percent") is not None or row.get("error"):
            print(f"    {row['remedy']}: {row.get('gain_percent')} {row.get('error', '')}", flush=True)
    for note in found.get("notes", ()):
        print(f"    {note}", flush=True)
    return found


def by_hand(name: str, found: dict[str, Any]) -> None:
    """Measure the unchanged script, its sets, and what `try` has found."""
    own = tuple((found.get("best") or {}).get("remedies") or ())
    sets = list(dict.fromkeys([(), *BY_HAND[name], *([own] if own else [])]))
    rows = measure_together([(path_of(name), one) for one in sets])
    found["hand"] = [{"remedies": list(one), **row} for one, row in zip(sets, rows, strict=True)]
    steps = {"+".join(one) or "-": row.get("step_ms") for one, row in zip(sets, rows, strict=True)}
    for one, step_ms in steps.items():
        print(f"    by hand {one}: {'failed' if step_ms is None else f'{step_ms:.2f} ms'}", flush=True)


def forecasts(results: dict[str, dict[str, Any]]) -> list[str]:
    """Of remedies alone, what was expected and what was measured, and the median difference."""
    rows = [
        (name, row)
        for name, found in results.items()
        for row in found.get("rows", ())
        if row.get("forecast_percent") is not None and row.get("gain_percent") is not None
    ]
    lines = [
        f"{name:22} {row['forecast_percent']:8.1f} {row['gain_percent']:8.1f}  {row['remedy']}" for name, row in rows
    ]
    if rows:
        off = statistics.median(abs(row["forecast_percent"] - row["gain_percent"]) for _, row in rows)
        lines = [f"{'':22} {'forecast':>8} {'measured':>8}", *lines, f"median difference: {off:.1f} points"]
    return lines or ["no remedy has both a forecast and a measured gain"]


def line_of(name: str, found: dict[str, Any]) -> str:
    """Of the table."""
    rows = [row for row in found.get("hand", ()) if row.get("step_ms")]
    # A set without an effect is the unchanged script once more, whatever its process was like.
    rows = [row for row in rows if not row["remedies"] or len(row["no_effect"]) < len(row["remedies"])]
    steps = {frozenset(row["remedies"]): row["step_ms"] for row in rows}
    base = steps.get(frozenset())
    own = frozenset((found.get("best") or {}).get("remedies") or ())
    first_s = found.get("first_step_s")
    took = "-" if first_s is None or not found.get("seconds") else f"{found['seconds'] - first_s:.0f}"
    measured = sum(
        row.get("gain_percent") is not None or bool(row.get("no_effect")) for row in found.get("rows", ())
    ) + len(found.get("sets", ()))
    if base is None or own not in steps:
        return f"{name:22} {'-':>7} {'-':>7} {'-':>6} {took:>7} {measured:9}  {'+'.join(sorted(own)) or '-'}"
    best = min(steps, key=lambda one: steps[one])
    gain, ours = 100 * (1 - steps[best] / base), 100 * (1 - steps[own] / base)
    share = f"{100 * ours / gain:.0f}" if gain > 3 else "-"
    return (
        f"{name:22} {gain:7.1f} {ours:7.1f} {share:>6} {took:>7} {measured:9}  {'+'.join(sorted(own)) or '-'} "
        f"(by hand {'+'.join(sorted(best)) or '-'})"
    )


def main() -> None:
    """See the module's docstring."""
    import torch

    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--only", nargs="*", default=[])
    options.add_argument("--budget", type=float, default=60.0, help="seconds of each trial")
    options.add_argument("--deadline", type=float, default=520.0, help="seconds for all of it")
    options.add_argument("--held-out", action="store_true", help="those that are opened last, alone")
    options.add_argument("--record", action="store_true", help="the unchanged script, for forecasts")
    chosen = options.parse_args()
    until, out = time.monotonic() + chosen.deadline, Path(os.environ.get("OUT", "."))
    kind = "gpu_" if torch.cuda.is_available() else "cpu_"
    names = [
        name
        for name in BY_HAND
        if name.startswith(kind) and (name in chosen.only if chosen.only else (name in HELD_OUT) == chosen.held_out)
    ]
    results: dict[str, dict[str, Any]] = {}
    try_s: list[float] = []
    hand_s: list[float] = []
    for name in names:
        began = time.monotonic()
        longest_s = max(try_s, default=chosen.budget + _START_S) + max(hand_s, default=_HAND_S)
        if began + longest_s > until:
            print(f"{name}: no time for it and its sets by hand", flush=True)
            continue
        with tempfile.TemporaryDirectory() as logdir, tempfile.TemporaryDirectory() as data:
            # What earlier trials have gained on this machine is not known to a new user.
            os.environ["XDG_DATA_HOME"] = data
            results[name] = tried(name, chosen.budget, Path(logdir) if chosen.record else None)
        tried_at = time.monotonic()
        by_hand(name, results[name])
        try_s.append(tried_at - began)
        hand_s.append(time.monotonic() - tried_at)
        (out / "in_a_minute.json").write_text(json.dumps(results))
    print(f"{'':22} {'by hand':>7} {'try':>7} {'of it':>6} {'seconds':>7} {'measured':>9}  set", flush=True)
    for name in results:
        print(line_of(name, results[name]), flush=True)
    print("\n".join(forecasts(results)), flush=True)


if __name__ == "__main__":
    main()
