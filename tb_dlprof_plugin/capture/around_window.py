"""What is measured outside of the full window of one cycle: the durations of single steps, their energy, and the light
window."""

from __future__ import annotations

import os
import time

from tb_dlprof_plugin.capture.analysis_job import AfterPart, LightTrace
from tb_dlprof_plugin.capture.baseline_timer import StepTimer
from tb_dlprof_plugin.capture.cycle import MOST_TIMED, StepKind
from tb_dlprof_plugin.capture.export import remove
from tb_dlprof_plugin.capture.facts.energy import EnergyMeter
from tb_dlprof_plugin.capture.light_window import LightRecording
from tb_dlprof_plugin.model.run_facts import RunFacts

_ENOUGH_AFTER, _ENOUGH_AFTER_S = 20, 2.5
"""Steps and seconds after the full window. On shared machines the speed of a CPU varies over some tenths of a second:
steps within one such period say little about the others."""
_LEAST_AFTER, _LONGEST_AFTER_S = 4, 6.0
"""With steps so long that those take more time, these limits apply."""
_LONGEST_SETTLING_S = 1.0


class OutsideSteps:
    """Follows the steps of a training outside of the full window. Its methods may raise what torch raises.

    Args:
        folder: where the light window's trace waits for its analysis.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._timer = StepTimer()
        self._energy = EnergyMeter()
        self._light = LightRecording()
        self._trace: LightTrace | None = None
        self._kind = StepKind.REST
        self._pid = os.getpid()
        self._after_began_s: float | None = None
        self.light_due = False
        """Whether the full window that came last still lacks its light window."""

    @property
    def records(self) -> bool:
        """Whether the light window's profiler is on."""
        return self._light.running

    def turn(self, kind: StepKind) -> None:
        """End the current step and begin one of this kind."""
        self.end(kind)
        self.begin(kind)

    def end(self, following: StepKind) -> None:
        """End the current step; call it before other profilers do their work between two steps."""
        if following not in (StepKind.TIMED, StepKind.REST):
            self._energy.end()
        if self._kind is StepKind.TIMED:
            self._timer.mark()
        elif self._kind is StepKind.LIGHT:
            if following is StepKind.LIGHT:
                self._light.boundary()
            else:
                self._trace = self._light.finish(
                    os.path.join(self._folder, f".{self._pid}.{time.time_ns()}.light.json")
                )
        elif self._light.running and following is not StepKind.LIGHT:
            self._light.drop()

    def begin(self, kind: StepKind) -> None:
        """A step of this kind begins."""
        before, self._kind = self._kind, kind
        if kind is StepKind.TIMED:
            self._energy.begin()
            if before is not StepKind.TIMED:
                self._timer.begin()
            if self._after_began_s is None:
                self._after_began_s = time.monotonic()
        elif kind is StepKind.LIGHT_WARMUP:
            self._light.prepare()
        elif kind is StepKind.LIGHT and before is not StepKind.LIGHT:
            self._light.begin()

    def before(self) -> tuple[list[int], LightTrace | None]:
        """What was measured before the full window, which has just ended; the part after it begins."""
        trace, self._trace = self._trace, None
        self.light_due = trace is None
        durations = self._timer.durations_ns()[-MOST_TIMED:]
        self._timer.new_cycle()
        self._kind, self._after_began_s = StepKind.FULL, None
        return durations, trace

    def after(self) -> AfterPart:
        """What was measured after the full window so far. The durations count for the next cycle as well."""
        if not self._timer.steps:
            # The steps end within the light window that comes first; a later one is the next cycle's.
            self.interrupt()
        self._settle()
        trace, self._trace = self._trace, None
        self._energy.end()
        energy, missing = self._energy.measured(), self._energy.missing
        self._energy.forget()
        return AfterPart(self._timer.durations_ns()[:MOST_TIMED], trace, energy, missing)

    def fill_energy(self, facts: RunFacts) -> None:
        """Fill what was measured so far; the part after the window may replace it."""
        facts.energy, facts.energy_missing = self._energy.measured(), self._energy.missing

    def after_is_over(self) -> bool:
        """Whether enough was measured after the full window, or the next one's light window begins."""
        steps = self._timer.steps
        if self._kind is StepKind.LIGHT_WARMUP and steps:
            return True
        if steps < _LEAST_AFTER or self._after_began_s is None:
            return False
        seconds = time.monotonic() - self._after_began_s
        enough = (steps >= _ENOUGH_AFTER and seconds > _ENOUGH_AFTER_S) or seconds > _LONGEST_AFTER_S
        # Steps are counted up to a number, energy is measured for a time.
        enough = enough or (steps >= MOST_TIMED and (seconds > _ENOUGH_AFTER_S or not self._energy.running))
        return enough and self._timer.settled()

    def interrupt(self) -> None:
        """The training stops or does something else: discard a light window in progress."""
        self._energy.end()
        if self._pid == os.getpid() and self._light.running:
            self._light.drop()
            self._kind = StepKind.REST

    def drop(self) -> None:
        """End all measurements and remove temporary files."""
        if self._pid != os.getpid():
            return
        self.interrupt()
        self._kind = StepKind.REST
        if self._trace is not None:
            remove(self._trace.path)
            self._trace = None

    def _settle(self) -> None:
        """Wait a moment for the GPU to pass the last steps."""
        until_s = time.monotonic() + _LONGEST_SETTLING_S
        while not self._timer.settled() and time.monotonic() < until_s:
            time.sleep(0.001)
