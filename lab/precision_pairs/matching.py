"""How much of two recordings of one model is matched, what the rest is, and whether the waterfall adds up.

    python -m lab.precision_pairs.matching [DIRECTORY ...]

Below each DIRECTORY (default: demo/recorded and what is recorded next to this file) every folder that holds a run named
``fp32`` is compared with each other run in it. GPU time in percent: "base" and "candidate" are what is matched of each
run, of all but casts and GradScaler's work; then where all of the candidate's is. "waterfall" is what the buckets of
both steps lack to the step times, in nanoseconds. "by sequence" is how much of the base's time finds the same partner
when neither run tells its modules, so that only the order of ops and their dims are left.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
from pathlib import Path

import numpy as np

from tb_dlprof_plugin.comparison import Comparison, compare
from tb_dlprof_plugin.comparison.match import match_sites
from tb_dlprof_plugin.metrics.op_sites import Run, run_of
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.logdir import read_profiles

ROOT = Path(__file__).resolve().parents[2]
DEFAULT = (ROOT / "demo" / "recorded", ROOT / "tests" / "data" / "precision_pairs")
BASE = "fp32"
COLUMNS = (
    "pair",
    "base",
    "candidate",
    "matched",
    "casts",
    "scaler",
    "compiled",
    "unmatched",
    "speedup",
    "waterfall",
    "by sequence",
)


def pairs(directories: list[Path]) -> list[tuple[str, Path, Path]]:
    """Name, base and candidate of each pair below the directories."""
    found = []
    for directory in directories:
        for base in sorted(path for path in directory.rglob(BASE) if path.is_dir()):
            for candidate in sorted(path for path in base.parent.iterdir() if path.is_dir() and path != base):
                found.append((str(candidate.relative_to(directory)), base, candidate))
    return found


def closure_ns(found: Comparison) -> int:
    """What the waterfall's bars lack to the step times: 0 where they add up."""
    missing = [
        abs(step - sum(times))
        for step, times in zip(
            found.step_ns,
            ([bucket.a_ns for bucket in found.buckets], [bucket.b_ns for bucket in found.buckets]),
            strict=True,
        )
    ]
    return sum(missing)


def same_by_sequence(base: ProfileView, candidate: ProfileView) -> float | None:
    """Share of the base's matched GPU time (percent) that finds the same partner without module paths."""
    known, blind = (
        tuple(run_of(view, view.selection()) for view in frames)
        for frames in ((base, candidate), (without_modules(base), without_modules(candidate)))
    )
    partner, partner_blind = _partners(*known), _partners(*blind)
    sites = known[0].sites
    same = whole = 0
    for call, found in partner.items():
        weight = int(sites.gpu_ns[sites.of_call[call]])
        whole += weight
        same += weight if partner_blind.get(call) == found else 0
    return 100 * same / whole if whole else None


def without_modules(view: ProfileView) -> ProfileView:
    """The same run, recorded as if without module ranges and Python stacks."""
    ops = view.profile.ops
    return ProfileView(
        dataclasses.replace(view.profile, ops=dataclasses.replace(ops, module=np.zeros_like(ops.module)))
    )


def _partners(a: Run, b: Run) -> dict[int, int]:
    """By the first call of each matched site of run a the first call of its partner."""
    of_a = match_sites(a, b).of_a
    first_a, first_b = _first_calls(a), _first_calls(b)
    return {first_a[site]: first_b[int(of_a[site])] for site in np.flatnonzero(of_a >= 0).tolist()}


def _first_calls(run: Run) -> dict[int, int]:
    tops = np.flatnonzero(run.view.profile.ops.top[run.view.profile.calls.op] & (run.sites.of_call >= 0))
    sites, first = np.unique(run.sites.of_call[tops], return_index=True)
    return dict(zip(sites.tolist(), tops[first].tolist(), strict=True))


def row(name: str, found: Comparison, by_sequence: float | None) -> tuple[str, ...]:
    """One line of the table."""
    base, candidate = found.shares
    total = candidate.total_ns

    def of_candidate(value_ns: int) -> str:
        return f"{100 * value_ns / total:.2f}" if total else "unknown"

    return (
        name,
        _percent(base.matched_percent),
        _percent(candidate.matched_percent),
        of_candidate(candidate.matched_ns),
        of_candidate(candidate.casts_ns),
        of_candidate(candidate.scaler_ns),
        of_candidate(candidate.compiled_ns),
        of_candidate(candidate.unmatched_ns + candidate.unlinked_ns),
        "unknown" if found.speedup is None else f"{found.speedup:.2f}",
        str(closure_ns(found)),
        _percent(by_sequence),
    )


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("directories", nargs="*", type=Path, default=[path for path in DEFAULT if path.is_dir()])
    directories = parser.parse_args().directories
    frames: dict[Path, ProfileView] = {}
    eager: list[tuple[float, float]] = []
    blind: list[float] = []
    print("| " + " | ".join(COLUMNS) + " |")
    print("|" + "---|" * len(COLUMNS))
    worst = 0
    for name, base, candidate in pairs(directories):
        if base not in frames:
            frames = {base: _frame(base)}
        other = _frame(candidate)
        found, by_sequence = compare(frames[base], other), same_by_sequence(frames[base], other)
        print("| " + " | ".join(row(name, found, by_sequence)) + " |", flush=True)
        worst = max(worst, closure_ns(found))
        matched = [side.matched_percent for side in found.shares]
        if matched[0] is not None and matched[1] is not None and not any(side.compiled_ns for side in found.shares):
            eager.append((matched[0], matched[1]))
            blind.append(by_sequence or 0.0)
    if eager:
        for side, values in zip(("base", "candidate"), zip(*eager, strict=True), strict=True):
            print(f"{side}: matched {min(values):.2f} % at least, {statistics.median(values):.2f} % in the median")
        low, middle = min(blind), statistics.median(blind)
        print(f"the same partner without modules: {low:.2f} % at least, {middle:.2f} % in the median")
        print(f"{len(eager)} pairs without compiled code; every waterfall within {worst} ns of the step times")


def _percent(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"


def _frame(run: Path) -> ProfileView:
    return ProfileView(read_profiles(run)[-1].profile)


if __name__ == "__main__":
    main()
