"""Fits the power of kinds of work to measured trainings, and compares estimates and forecasts with what was measured.

    python -m lab.energy.compare DIRECTORY ... [--fit] [--rows]

Each DIRECTORY is what `lab.energy.record` packed, unpacked. With --fit the entry of `names/gpu_power.py` is
fitted to all of them, with the power at rest of the first, and printed with the errors of each model estimated by a fit
to the others. Without: errors of the hook's mean power against the window outside of it, of the estimate of a step from
the table alone, and of forecasts from the FP32 recording in BF16, TF32 and with twice the batch, and how many truths
lie within their interval; for the table alone that is twice its spread.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tb_dlprof_plugin.metrics.energy_split import KINDS, work_of_launches
from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.model.run_facts import GpuEnergy
from tb_dlprof_plugin.names.gpu_power import PICO, GpuPower, Work, power_of
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.logdir import read_profiles

PRODUCTS = (Work.FP32, Work.TF32, Work.HALF)
SIDE = 8192
"""Of the matrices in loops."""
LOOPS = {
    "mm_fp32": (Work.FP32, 4 * 3 * SIDE**2 * 4),
    "mm_tf32": (Work.TF32, 4 * 3 * SIDE**2 * 4),
    "mm_bf16": (Work.HALF, 4 * 3 * SIDE**2 * 2),
    "copy": (Work.COPIES, 4 * 2 * SIDE**2 * 16),
    "small_add": (Work.OTHER, 0),
}
"""Kind of work, and bytes of device memory in a step; what `small_add` moves stays in the cache."""
CACHE_BYTES = 30_000_000
"""Half of the L2 of an H200, which two of the tensors of an op share."""


@dataclass(frozen=True)
class Measured:
    """A step: seconds and FLOPs by kind, bytes, its length in seconds and its joules."""

    model: str
    precision: str
    seconds: dict[Work, float]
    flops: dict[Work, float]
    bytes: float
    step_s: float
    joules: float

    def row(self) -> list[float]:
        """Coefficients of the fit, in watts and picojoules."""
        products = sum(self.seconds.get(kind, 0.0) for kind in PRODUCTS)
        return [
            products,
            sum(self.seconds.values()) - products,
            *(self.flops.get(kind, 0.0) * PICO for kind in PRODUCTS),
            self.bytes * PICO,
        ]


def rows_of(directory: Path) -> list[dict[str, Any]]:
    """What was measured.

    Steps are taken between the first and the last tick, as their joules are: the recorder's own mean had the last two
    steps of a window, which follow each other faster where the CPU sets the pace. A second window of what was recorded
    is a repetition.
    """
    found: list[dict[str, Any]] = json.loads((directory / "truth.json").read_text())["rows"]
    seen: set[tuple[object, ...]] = set()
    rows = []
    for row in found:
        if row.get("joules_per_step") is None and row.get("watts") is None:
            continue
        key = row["model"], row["precision"], row.get("batch_size")
        again = row["model"] not in ("idle", "loop") and key in seen
        seen.add(key)
        if row["model"] not in ("idle", "loop") and row.get("joules_per_step"):
            row = row | {"step_ms": 1e3 * row["joules_per_step"] / row["watts"], "again": again}
        rows.append(row)
    return rows


def recording_of(directory: Path, row: dict[str, Any]) -> Profile | None:
    """What the hook recorded of a row's model in its precision."""
    folder = directory / row["model"] / row["precision"]
    stored = read_profiles(folder) if folder.exists() else []
    return stored[-1].profile if stored else None


def view_of(directory: Path, row: dict[str, Any]) -> ProfileView | None:
    """The recording of a row, with the energy and the step that were measured for it."""
    profile = recording_of(directory, row)
    if profile is None:
        return None
    facts = replace_facts(profile.facts, row)
    return ProfileView(replace(profile, facts=facts))


def replace_facts(facts: Any, row: dict[str, Any]) -> Any:
    """With the energy of the window that was measured outside."""
    import msgspec

    seconds = row["seconds"]
    energy = GpuEnergy(0, round(1e3 * row["watts"] * seconds), round(1e9 * seconds), row["ticks"])
    step_ns = round(1e6 * row["step_ms"])
    return msgspec.structs.replace(
        facts, energy=[energy], unprofiled_before_ns=[step_ns] * 4, unprofiled_after_ns=[step_ns] * 4
    )


def measured(directory: Path) -> list[Measured]:
    """Of recorded configurations, and of loops of one kernel."""
    found = []
    for row in rows_of(directory):
        step_s = row["step_ms"] / 1e3 if row.get("step_ms") else 0.0
        if row["model"] == "loop" and row["precision"] not in LOOPS:
            continue  # Measured, and without a part in the fit.
        if row["model"] == "loop":
            kind, moved = LOOPS[row["precision"]]
            flops = {kind: float(row["flops"])} if row["flops"] else {}
            found.append(
                Measured("loop", row["precision"], {kind: step_s}, flops, moved, step_s, row["joules_per_step"])
            )
        elif row["model"] != "idle" and not row["again"] and (view := view_of(directory, row)) is not None:
            found += [_of_view(view, row, step_s)] if view.profile.facts.batch_size == row["batch_size"] else []
    return found


def _of_view(view: ProfileView, row: dict[str, Any], step_s: float) -> Measured:
    selection = view.selection()
    work, inside = work_of_launches(view, selection, CACHE_BYTES), view.selected_launches(selection)
    seconds = np.where(inside, view.profile.launches.duration_ns / 1e9, 0.0) / selection.count
    flops = np.where(inside, work.flops, 0.0) / selection.count
    by_kind = [np.bincount(work.kind, weights=values, minlength=len(KINDS)).tolist() for values in (seconds, flops)]
    return Measured(
        row["model"],
        row["precision"],
        dict(zip(KINDS, by_kind[0], strict=True)),
        dict(zip(KINDS, by_kind[1], strict=True)),
        float(work.bytes[inside].sum()) / selection.count,
        step_s,
        row["joules_per_step"],
    )


def fit(found: list[Measured], idle_watts: float, spread: float = 0.0) -> GpuPower:
    """Least squares of errors relative to a step's energy, no coefficient below 0."""
    a = np.array([one.row() for one in found]) / np.array([[one.joules] for one in found])
    values = _nonnegative(a, np.array([1.0 - idle_watts * one.step_s / one.joules for one in found])).tolist()
    per_flop = dict(zip(PRODUCTS, (round(value, 3) for value in values[2:5]), strict=True))
    return GpuPower(
        idle_watts, round(values[0], 1), round(values[1], 1), per_flop, round(values[5], 2), CACHE_BYTES, spread, ""
    )


def _nonnegative(a: Any, b: Any) -> Any:
    """Lawson and Hanson (1974), for a handful of unknowns."""
    active = np.zeros(a.shape[1], dtype=bool)
    x = np.zeros(a.shape[1])
    for _ in range(3 * a.shape[1]):
        gradient = a.T @ (b - a @ x)
        gradient[active] = -np.inf
        if gradient.max() <= 1e-9:
            break
        active[int(gradient.argmax())] = True
        while True:
            z = np.zeros(a.shape[1])
            z[active] = np.linalg.lstsq(a[:, active], b, rcond=None)[0]
            if (z[active] >= 0).all():
                x = z
                break
            below = active & (z < 0)
            step = float(np.min(x[below] / np.maximum(x[below] - z[below], 1e-12)))
            x = x + step * (z - x)
            active &= x > 1e-12
    return x


def estimate(power: GpuPower, one: Measured, limit_watts: float = 700.0) -> float:
    """Joules of a step from the table alone."""
    values = [power.product_watts, power.other_watts, *(power.picojoules_per_flop[kind] for kind in PRODUCTS)]
    above = float(np.dot(one.row(), [*values, power.picojoules_per_byte]))
    return min(power.idle_watts * one.step_s + above, limit_watts * one.step_s)


def idle_of(directory: Path) -> float:
    """Watts at rest after work, with clocks up."""
    return float(next(r["watts"] for r in rows_of(directory) if r["model"] == "idle" and r["precision"] != "start"))


def print_fit(directories: list[Path]) -> None:
    """The entry of the table, and each model by a fit to the others."""
    found, idle = [one for directory in directories for one in measured(directory)], idle_of(directories[0])
    models = sorted({one.model for one in found} - {"loop"})
    errors = []
    for model in models:
        power = fit([one for one in found if one.model != model], idle)
        for one in (one for one in found if one.model == model):
            off = estimate(power, one) / one.joules - 1
            errors.append(off)
            print(f"without {model:7} {one.precision:5} {one.joules:9.3f} J, estimated {100 * off:+6.1f} %")
    print(
        f"models left out: median {100 * np.median(np.abs(errors)):.1f} %, worst {100 * np.max(np.abs(errors)):.1f} %"
    )
    power = fit(found, idle)
    for one in found:
        off = estimate(power, one) / one.joules - 1
        print(f"{one.model:7} {one.precision:9} {one.joules:9.3f} J {100 * off:+6.1f} %")
    print(replace(power, spread=round(float(np.std(np.log1p(errors))), 3)))


@dataclass(frozen=True)
class Error:
    """Of an estimate: relative to the truth, and whether that lies within its interval (None without one)."""

    off: float
    held: bool | None = None


def errors_of(directory: Path, show: bool = False) -> dict[str, list[Error]]:
    """Errors by what was estimated."""
    from tb_dlprof_plugin.model.plan_request import PlanRequest
    from tb_dlprof_plugin.planning.energy import NoEnergy, planned_energy

    rows = [row for row in rows_of(directory) if row["model"] not in ("idle", "loop")]
    found: dict[str, list[Error]] = {
        "hook": [],
        "table alone": [],
        "precision": [],
        "batch": [],
        "precision and batch": [],
        "again": [],
    }
    for row in rows:
        stored = recording_of(directory, row)
        # One with another batch size is a window of its own.
        hook = stored.facts.energy if stored is not None and stored.facts.batch_size == row["batch_size"] else []
        found["hook"] += [Error(1e6 * one.millijoules / one.duration_ns / row["watts"] - 1) for one in hook]
    for one in measured(directory):
        view = (
            view_of(directory, next(r for r in rows if (r["model"], r["precision"]) == (one.model, one.precision)))
            if one.model != "loop"
            else None
        )
        power = power_of("NVIDIA H200")
        if view is None or power is None:
            continue
        off = estimate(power, one) / one.joules - 1
        found["table alone"].append(Error(off, 1 - 2 * power.spread <= 1 / (1 + off) <= 1 + 2 * power.spread))
        if show:
            print(f"table alone {one.model:7} {one.precision:5} {one.joules:9.3f} J {100 * off:+6.1f} %")
    for row in rows:
        base = next((r for r in rows if r["model"] == row["model"] and r["precision"] == "fp32"), None)
        same = next(
            r
            for r in rows
            if (r["model"], r["precision"], r["batch_size"]) == (row["model"], row["precision"], row["batch_size"])
        )
        if row["again"]:
            found["again"].append(Error(row["joules_per_step"] / same["joules_per_step"] - 1))
            continue
        if base is None or row is base or (view := view_of(directory, base)) is None:
            continue
        precision = row["precision"] if row["precision"] != "fp32" else None
        larger = row["batch_size"] != base["batch_size"]
        kind = "batch" if precision is None else "precision and batch" if larger else "precision"
        try:
            forecast = planned_energy(view, PlanRequest(batch_size=row["batch_size"], precision=precision))
        except NoEnergy as error:
            if show:
                print(f"{kind:20} {row['model']:7} {row['precision']}: {error}")
            continue
        off = forecast.joules / row["joules_per_step"] - 1
        held = forecast.low_joules <= row["joules_per_step"] <= forecast.high_joules
        found[kind].append(Error(off, held))
        if show:
            name = f"{kind:20} {row['model']:7} {row['precision']:5} {row['batch_size']:6}"
            step = f"step {100 * (forecast.step_ms / row['step_ms'] - 1):+6.1f} %"
            inside = "in" if held else "OUT"
            print(f"{name} {row['joules_per_step']:9.3f} J {100 * off:+6.1f} % {step} {inside}")
    return found


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directories", type=Path, nargs="+")
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--rows", action="store_true")
    given = parser.parse_args()
    if given.fit:
        print_fit(given.directories)
        return
    errors: dict[str, list[Error]] = {}
    for directory in given.directories:
        for name, more in errors_of(directory, given.rows).items():
            errors.setdefault(name, []).extend(more)
    for name, found in errors.items():
        if found:
            off = 100 * np.abs([one.off for one in found])
            known = [one.held for one in found if one.held is not None]
            held = f", {sum(known)} of {len(known)} within the interval" if known else ""
            print(f"{name}: {len(found)}, median {np.median(off):.1f} %, worst {off.max():.1f} %{held}")


if __name__ == "__main__":
    main()
