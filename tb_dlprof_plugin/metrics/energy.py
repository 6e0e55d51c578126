"""The measured energy of a step: the mean power of steps without the profiler, by the GPU's counter, times the step."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from tb_dlprof_plugin.metrics.needs import Need, missing
from tb_dlprof_plugin.metrics.roofline import gpu_name
from tb_dlprof_plugin.model.frameworks import PYTORCH
from tb_dlprof_plugin.names.gpu_power import power_of
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection
from tb_dlprof_plugin.simulation.estimate import step_estimate

_LEAST_S = 0.35
"""A shorter window has hardly more than two ticks of a counter that changes ten times a second."""
_EDGE_S = 0.004
"""Half of what lies between the two readings around a tick, with the time of a call (2 to 4 ms on an H200)."""
_REPEATS = 0.01
"""Half the interval at least, as a share: what windows of a second differ by (`lab/energy`)."""
HOW_TO_RECORD = (
    "The hook reads the GPU's energy counter over steps without the profiler: record on a GPU of Volta or newer, and "
    "call step() for some three seconds after the recorded steps."
)


@dataclass(frozen=True, slots=True)
class StepEnergy:
    """Energy of this process's GPUs in a step without the profiler.

    Attributes:
        joules: of a step.
        low_joules, high_joules: ends of its 95 % interval; the sensor's own error, about 5 %, is the same in all runs
            of a GPU and not in it.
        watts: mean power.
        joules_per_sample: None without a batch size.
        idle_watts: power at rest with clocks up, of GPUs of this kind; None where not known.
        seconds: length of the windows.
        gpus: how many there were.
        power_limit_watts: in force, of all of them; None where not known.
        limits: by what held a clock down, percent of the readings.
        sm_clock_mhz: mean over the readings.
        temperature_c: the highest reading.
    """

    joules: float
    low_joules: float
    high_joules: float
    watts: float
    joules_per_sample: float | None
    idle_watts: float | None
    seconds: float
    gpus: int
    power_limit_watts: float | None
    limits: dict[str, float]
    sm_clock_mhz: int | None
    temperature_c: int | None

    @property
    def idle_percent(self) -> float | None:
        """Share of the energy that the GPUs would have taken at rest."""
        return None if self.idle_watts is None else min(100.0 * self.idle_watts / self.watts, 100.0)

    def saved_joules(self, low_ns: float, high_ns: float) -> tuple[float, float]:
        """Least and most that a step saves which gets shorter by so much.

        The time saved is one in which the GPU rested at the least, or worked as on average at the most.
        """
        ends = [watts * ns / 1e9 for watts in (self.idle_watts or 0.0, self.watts) for ns in (low_ns, high_ns)]
        return min(ends), max(ends)


@per_selection
def step_energy(view: ProfileView, selection: Selection) -> StepEnergy | None:
    """The energy of a step; None where it was not measured (`energy_missing` says why)."""
    facts, step = view.profile.facts, step_estimate(view, selection)
    rows = facts.energy
    if not step.is_step or not rows or any(row.duration_ns < _LEAST_S * 1e9 or row.millijoules <= 0 for row in rows):
        return None
    watts = sum(row.millijoules / 1e3 / (row.duration_ns / 1e9) for row in rows)
    seconds = min(row.duration_ns for row in rows) / 1e9
    joules = watts * step.ns / 1e9
    step_off = (step.high_ns - step.low_ns) / 2 / step.ns if step.ns else 0.0
    off = math.hypot(step_off, 2 * _EDGE_S / seconds, _REPEATS)
    known = power_of(gpu_name(view))
    limits: Counter[str] = Counter()
    for row in rows:
        limits.update({limit.name: limit.readings for limit in row.clock_limits})
    readings = max(sum(row.readings for row in rows), 1)
    clocks = [row.sm_clock_mhz for row in rows if row.sm_clock_mhz is not None]
    caps = [row.power_limit_mw for row in rows if row.power_limit_mw is not None]
    return StepEnergy(
        joules=joules,
        low_joules=joules * max(1 - off, 0.0),
        high_joules=joules * (1 + off),
        watts=watts,
        joules_per_sample=joules / facts.batch_size if facts.batch_size else None,
        idle_watts=known.idle_watts * len(rows) if known is not None else None,
        seconds=seconds,
        gpus=len(rows),
        power_limit_watts=sum(caps) / 1e3 if len(caps) == len(rows) else None,
        limits={name: min(100.0 * count / readings, 100.0) for name, count in sorted(limits.items())},
        sm_clock_mhz=round(sum(clocks) / len(clocks)) if clocks else None,
        temperature_c=max((row.temperature_c for row in rows if row.temperature_c is not None), default=None),
    )


def energy_missing(view: ProfileView) -> str:
    """Why the energy of a step is not known, in a sentence; "" where it is."""
    facts = view.profile.facts
    if step_energy(view, view.selection()) is not None:
        return ""
    if not view.profile.has_gpu:
        return "The energy is that of a GPU, and the run used none."
    if view.profile.source.framework != PYTORCH:
        return "The energy was not recorded: a trace does not hold it."
    if why := missing(view, view.selection(), Need.ITERATIONS):
        return f"The energy of a step is not known. {why}"
    if facts.energy_missing:
        return f"The energy was not recorded: {facts.energy_missing}. {HOW_TO_RECORD}"
    return f"The energy was not recorded. {HOW_TO_RECORD}"
