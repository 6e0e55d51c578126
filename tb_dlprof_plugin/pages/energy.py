"""The Energy page: joules of a step as measured, where they go as estimated, what other configurations would take, and
an epoch's cost.

What cannot be answered is None, and `unknown` says why.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
import numpy as np

from tb_dlprof_plugin.metrics.energy import StepEnergy, energy_missing, step_energy
from tb_dlprof_plugin.metrics.energy_split import EnergySplit, NoSplit, energy_split
from tb_dlprof_plugin.metrics.module_tree import module_tree
from tb_dlprof_plugin.metrics.unattributed_ops import all_ops
from tb_dlprof_plugin.model.direction import Direction, direction_of
from tb_dlprof_plugin.model.formatting import energy, share, uncapitalized
from tb_dlprof_plugin.model.request import Option
from tb_dlprof_plugin.model.struct_from import struct_from
from tb_dlprof_plugin.pages.columns import Column, Definition
from tb_dlprof_plugin.pages.common import SelectedRange, selected_range
from tb_dlprof_plugin.pages.quantities import JOULES, JOULES_PER_SAMPLE, WATTS
from tb_dlprof_plugin.planning import ForecastError, Precision, forecast
from tb_dlprof_plugin.planning.energy import NoEnergy, forecast_energy
from tb_dlprof_plugin.profile_view import ProfileView, Selection, op_label
from tb_dlprof_plugin.simulation.estimate import step_estimate
from tb_dlprof_plugin.store.run_ref import RunRef

_MOST_OPS = 100
_NANO = 1e-9
_KWH = 3.6e6
_AT_REST = "At rest"
_LABELS: dict[Precision, str] = {
    "fp32": "as recorded",
    "tf32": "TF32",
    "fp16": "FP16 (autocast)",
    "bf16": "BF16 (autocast)",
}
_LARGER: tuple[Precision, ...] = ("fp32", "bf16")
"""Precisions that are shown with twice the batch, too: each forecast takes some tenths of a second."""


class EnergyPart(msgspec.Struct, frozen=True):
    """Joules of a step of one kind of work, or of the GPU at rest."""

    kind: Annotated[
        str,
        Column("Work", width=220),
        Definition(
            "energyKind",
            "The GPU at rest takes its power all the time; what kernels take above that depends on their kind.",
        ),
    ]
    joules: Annotated[float, Column("Energy", "energyPart")]
    percent: Annotated[float, Column("Share", "energyShare")]


class EnergyModule(msgspec.Struct, frozen=True):
    """Joules of a step above rest of one module with all below it; path "" is the whole model."""

    path: Annotated[str, Column("Module", "modulePath", missing="whole model", width=220)]
    joules: Annotated[
        float,
        Column("Energy above rest"),
        Definition("energyModule", "What the kernels of the module take above the GPU's power at rest, in a step."),
    ]
    percent: Annotated[float, Column("Share", "energyShare")]


class EnergyOp(msgspec.Struct, frozen=True):
    """Joules of a step above rest of one op; ``watts`` is its mean power above rest while it runs."""

    id: str
    name: Annotated[str, Column("Op", "opName", width=220)]
    direction: Annotated[Direction, Column("Pass", "pass", missing="–")]
    joules: Annotated[float, Column("Energy above rest", "energyPart")]
    percent: Annotated[float, Column("Share", "energyShare")]
    watts: Annotated[
        float | None, Column("Power above rest", "Its energy above rest over the time of its kernels, copies and sets.")
    ]


class EnergyChoice(msgspec.Struct, frozen=True):
    """Another precision or batch size; ``why`` says why it is not known. The first row is as recorded."""

    precision: Annotated[
        str, Column("Precision", "What the step computes in; by autocast where it says so.", width=150)
    ]
    batch_size: Annotated[int | None, Column("Batch", "planBatch")]
    step_ms: Annotated[float | None, Column("Step", "planStep")]
    joules_per_step: Annotated[float | None, Column("Energy", "energyChoice", unit="joules")]
    low_joules: Annotated[float | None, Column("At least", "energyInterval")]
    high_joules: Annotated[float | None, Column("At most", "energyInterval")]
    joules_per_sample: Annotated[float | None, Column(unit="joules"), JOULES_PER_SAMPLE]
    saved_percent: Annotated[
        float | None, Column("Saved", "Less energy per sample than as recorded; below 0 it is more.")
    ]
    why: str


class EnergyLimit(msgspec.Struct, frozen=True):
    """What held the GPU's clock down, in percent of the readings over steps without the profiler."""

    name: str
    percent: float


class EpochEnergy(msgspec.Struct, frozen=True):
    """An epoch of all processes, each taken to need what this one does; ``cost`` and ``co2_grams`` None without a
    price or factor."""

    steps: int
    processes: int
    hours: float
    kwh: Annotated[
        float,
        Definition(
            "energyEpoch",
            "Energy of a step times the steps of an epoch and the number of processes. GPUs alone: not CPUs, cooling "
            "or the power supply.",
        ),
    ]
    cost: float | None
    co2_grams: float | None


class EnergyPage(msgspec.Struct, frozen=True):
    """Energy of this process's GPUs in a step without the profiler.

    ``power_limit_watts`` is the limit in force. ``residual_percent`` is what the estimate of the step from kernels
    alone is off the counter. ``unknown`` maps what is not known to why. Parts, modules and ops are empty where the
    energy cannot be divided.
    """

    ref: RunRef
    headline: str
    range: SelectedRange
    joules_per_step: Annotated[float | None, JOULES]
    low_joules: float | None
    high_joules: float | None
    joules_per_sample: Annotated[float | None, JOULES_PER_SAMPLE]
    watts: Annotated[float | None, WATTS]
    idle_watts: Annotated[
        float | None,
        Definition(
            "idleWatts",
            "Power at rest with clocks up, as measured on a GPU of this kind.",
        ),
    ]
    idle_percent: Annotated[
        float | None, Definition("idleShare", "Share of a step's energy that the GPU would have taken at rest.")
    ]
    power_limit_watts: float | None
    sm_clock_mhz: int | None
    temperature_c: int | None
    seconds: float | None
    choices: list[EnergyChoice]
    limits: list[EnergyLimit]
    residual_percent: float | None
    parts: list[EnergyPart]
    modules: list[EnergyModule]
    ops: list[EnergyOp]
    total_ops: int
    epoch: EpochEnergy | None
    unknown: dict[str, str]


def energy_page(
    view: ProfileView,
    ref: RunRef,
    selection: Selection,
    price_per_kwh: Annotated[
        float | None, Option("Price of a kWh, in any currency.", label="Price of a kWh", key="price")
    ] = None,
    co2_per_kwh: Annotated[float | None, Option("Grams of CO2 of a kWh.", label="g of CO₂ a kWh", key="co2")] = None,
    steps_per_epoch: Annotated[
        int | None,
        Option(
            "Steps of an epoch; the length of the DataLoader by default, where it was recorded.",
            label="Steps of an epoch",
            key="steps",
            of_run=True,
        ),
    ] = None,
) -> EnergyPage:
    """The Energy page."""
    measured = step_energy(view, selection)
    unknown: dict[str, str] = {}
    if measured is None:
        unknown["joules_per_step"] = energy_missing(view)
    elif measured.joules_per_sample is None:
        unknown["joules_per_sample"] = (
            "The energy of a sample is not known: the batch size was not recorded; pass batch_size=."
        )
    split = _split(view, selection, unknown) if measured is not None else None
    modules, ops = (_modules(view, split), _ops(view, selection, split)) if split is not None else ([], [])
    return struct_from(
        EnergyPage,
        measured,
        ref=ref,
        headline=_headline(measured, split, unknown),
        range=selected_range(view, selection),
        joules_per_step=measured.joules if measured else None,
        limits=[EnergyLimit(name, percent) for name, percent in measured.limits.items()] if measured else [],
        residual_percent=split.residual_percent if split else None,
        parts=_parts(measured, split) if measured and split else [],
        modules=modules,
        ops=ops[:_MOST_OPS],
        total_ops=len(ops),
        choices=_choices(view, measured, unknown.get("joules_per_step", "")),
        epoch=_epoch(view, selection, measured, price_per_kwh, co2_per_kwh, steps_per_epoch, unknown),
        unknown=unknown,
    )


def _split(view: ProfileView, selection: Selection, unknown: dict[str, str]) -> EnergySplit | None:
    try:
        split = energy_split(view, selection)
    except NoSplit as error:
        unknown["parts"] = f"Where the energy goes is not known: {error}"
        return None
    if split.trusted:
        return split
    unknown["parts"] = (
        f"Where the energy goes is not known: the estimate from kernels is off the counter by "
        f"{split.residual_percent:+.0f} %."
    )
    return None


def _parts(measured: StepEnergy, split: EnergySplit) -> list[EnergyPart]:
    rows = [(_AT_REST, split.static_joules), *((kind.value, joules) for kind, joules in split.kinds.items() if joules)]
    parts = [EnergyPart(kind, joules, 100.0 * joules / measured.joules) for kind, joules in rows]
    return sorted(parts, key=lambda row: -row.joules)


def _modules(view: ProfileView, split: EnergySplit) -> list[EnergyModule]:
    tree = module_tree(view)
    if tree is None:
        return []
    call = view.profile.launches.call
    node = np.where(call >= 0, tree.of_call[np.maximum(call, 0)], -1)
    own = np.round(split.by(node, len(tree)) / _NANO).astype(np.int64)
    whole = tree.rolled_up(own) * _NANO
    rows = [
        EnergyModule(tree.path[at], float(whole[at]), 100.0 * float(whole[at]) / split.measured.joules)
        for at in np.flatnonzero(whole > 0).tolist()
    ]
    # A module before those below it, which take no more.
    return sorted(rows, key=lambda row: (-row.joules, row.path.count("."), row.path))


def _ops(view: ProfileView, selection: Selection, split: EnergySplit) -> list[EnergyOp]:
    every, launches = all_ops(view), view.profile.launches
    joules = split.by(every.of_launch, len(every))
    inside = view.selected_launches(selection)
    seconds = np.bincount(every.of_launch[inside], weights=launches.duration_ns[inside] / 1e9, minlength=len(every))
    rows = []
    for row in np.flatnonzero(joules > 0).tolist():
        launched = row < every.groups
        busy = float(seconds[row]) / selection.count
        rows.append(
            EnergyOp(
                id=view.groups.ids[row] if launched else every.id_of(row),
                name=op_label(view, row) if launched else every.name_of(row),
                direction=direction_of(int(view.groups.role[row])) if launched else "",
                joules=float(joules[row]),
                percent=100.0 * float(joules[row]) / split.measured.joules,
                watts=float(joules[row]) / busy if busy else None,
            )
        )
    return sorted(rows, key=lambda row: -row.joules)


def _choices(view: ProfileView, measured: StepEnergy | None, missing: str) -> list[EnergyChoice]:
    """As recorded, in other precisions, and with twice the batch."""
    batch, step_ms = view.profile.facts.batch_size, step_estimate(view, view.selection()).ns / 1e6
    if measured is None:
        return [EnergyChoice("as recorded", batch, step_ms, None, None, None, None, None, missing)]
    rows = [
        EnergyChoice("as recorded", batch, step_ms, measured.joules, measured.low_joules, measured.high_joules,
                     measured.joules_per_sample, 0.0 if measured.joules_per_sample is not None else None, "")
    ]  # fmt: skip
    refused: set[str] = set()
    for precision, label in _LABELS.items():
        sizes: list[int | None] = [None] if precision != "fp32" else []
        if batch and precision in _LARGER:
            sizes.append(2 * batch)
        for size in sizes:
            row = _choice(view, measured, precision, label, size)
            # One row says why a precision is out of the question.
            if row.joules_per_step is not None or row.why not in refused:
                rows.append(row)
            refused.add(row.why)
    return rows


def _choice(
    view: ProfileView, measured: StepEnergy, precision: Precision, label: str, size: int | None
) -> EnergyChoice:
    batch = size or view.profile.facts.batch_size
    try:
        found = forecast_energy(view, forecast(view, precision, size))
    except (ForecastError, NoEnergy) as error:
        return EnergyChoice(label, batch, None, None, None, None, None, None, str(error))
    sample = found.joules / batch if batch else None
    before = measured.joules_per_sample
    saved = 100.0 * (1.0 - sample / before) if sample is not None and before else None
    return EnergyChoice(
        label, batch, found.step_ms, found.joules, found.low_joules, found.high_joules, sample, saved, ""
    )


def _epoch(
    view: ProfileView,
    selection: Selection,
    measured: StepEnergy | None,
    price_per_kwh: float | None,
    co2_per_kwh: float | None,
    steps_per_epoch: int | None,
    unknown: dict[str, str],
) -> EpochEnergy | None:
    if measured is None:
        return None
    facts = view.profile.facts
    steps = steps_per_epoch or (facts.dataloader.batches if facts.dataloader else None)
    if not steps:
        unknown["epoch"] = "The steps of an epoch are not known; pass dataloader= when recording, or --steps-per-epoch."
        return None
    processes = facts.world_size or 1
    kwh = measured.joules * steps * processes / _KWH
    return EpochEnergy(
        steps=steps,
        processes=processes,
        hours=steps * step_estimate(view, selection).ns / 3.6e12,
        kwh=kwh,
        cost=None if price_per_kwh is None else kwh * price_per_kwh,
        co2_grams=None if co2_per_kwh is None else kwh * co2_per_kwh,
    )


def _headline(measured: StepEnergy | None, split: EnergySplit | None, unknown: dict[str, str]) -> str:
    if measured is None:
        return unknown["joules_per_step"]
    text = f"A step takes {energy(measured.joules)} at {measured.watts:,.0f} W"
    if measured.idle_percent is not None:
        text += f", of which the GPU at rest would take {share(measured.idle_percent, 0)}"
    if split is not None:
        kind, joules = max(split.kinds.items(), key=lambda item: item[1])
        of_whole = share(100.0 * joules / measured.joules, 0)
        text += f"; most of the rest goes into {uncapitalized(kind.value)} ({of_whole} of the whole)"
    held = [f"{name} in {share(percent, 0)} of the readings" for name, percent in measured.limits.items()]
    return f"{text}. {_sentence(held)}" if held else f"{text}."


def _sentence(held: list[str]) -> str:
    return f"The clock was held down: {', '.join(held)}."
