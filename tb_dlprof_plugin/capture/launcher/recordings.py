"""The recordings of one process, one after the other, and what is measured around each."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import torch

from tb_dlprof_plugin.capture.around_window import OutsideSteps
from tb_dlprof_plugin.capture.cycle import LIGHT_STEPS, StepKind, kind_outside
from tb_dlprof_plugin.capture.facts.identity import rank_and_world_size
from tb_dlprof_plugin.capture.launcher.protocol import ProcessStatus, RunRequest
from tb_dlprof_plugin.capture.light_window import light_is_possible
from tb_dlprof_plugin.capture.warn import probe

if TYPE_CHECKING:
    # Imported where a recording begins: most processes that import torch train nothing.
    from tb_dlprof_plugin.capture.launcher.recording import Recording
    from tb_dlprof_plugin.capture.launcher.training_state import OnCall, TrainingState


class Recordings:
    """Each recording is a cycle of the same training.

    Args:
        request: what to record.

    Attributes:
        outside: what is measured outside of the full windows.
        current: the recording that runs.
    """

    def __init__(self, request: RunRequest) -> None:
        self._request = request
        self.outside = OutsideSteps(request.run_directory)
        self.current: Recording | None = None
        # The last recording, while the iterations after it are measured.
        self._after: Recording | None = None
        # Iterations of the light window that have begun; iterations after the recording.
        self._steps = 0
        self._cycle = 0
        self._session: str | None = None
        self._own_profilers: weakref.WeakSet[Any] = weakref.WeakSet()

    @property
    def is_measured_after(self) -> bool:
        """Whether a recording is complete, and iterations after it are measured."""
        return self._after is not None

    def light_is_possible(self) -> bool:
        """Whether there can be a light window; with ``--mode simple`` the recording is one itself."""
        return not self._request.simple and not self._request.between_marks and light_is_possible()

    def is_of_script(self, profiler: Any) -> bool:
        """Whether the script made this profiler."""
        return profiler not in self._own_profilers

    def begin_light(self) -> None:
        """The light window warms up."""
        self._steps = 0
        self.outside.turn(StepKind.LIGHT_WARMUP)

    def next_light(self) -> bool:
        """An iteration begins. Returns whether it is one of the light window."""
        if self._steps >= LIGHT_STEPS:
            return False
        self._steps += 1
        self.outside.turn(StepKind.LIGHT)
        return True

    def begin(
        self, training: TrainingState, on_call: OnCall, status: ProcessStatus, *, iteration: int, live: bool
    ) -> Recording:
        """A recording begins with this iteration; live: without a warm-up."""
        self.outside.turn(StepKind.FULL)
        status.rank, status.world_size = rank_and_world_size()
        if status.world_size > 1:
            # The ranks of one training; other processes with the same rank are trainings of their own.
            self._session = self._request.session
        self.current = recording = training.recording(
            self._request,
            on_call,
            iteration=iteration,
            session=self._session,
            cycle=self._cycle,
            rank=status.rank,
            world_size=status.world_size,
            outside=self.outside,
        )
        recording.live = live
        recording.start()
        if not recording.failed:
            self._own_profilers.add(recording.profiler)
        return recording

    def finish(self, status: ProcessStatus, last: int, goes_on: bool) -> bool:
        """Write what was recorded, and say so in the status. Returns whether that worked.

        Args:
            status: of the process.
            last: the last iteration that was recorded.
            goes_on: iterations after it are going to be measured.
        """
        assert self.current is not None
        recording, self.current = self.current, None
        analyses = recording.finish(goes_on)
        # A second recording is a cycle of the same training.
        self._session = recording.handler.session
        status.used_gpu = bool(probe(torch.cuda.is_initialized))
        if not analyses:
            status.phase = "failed"
            status.said = "the trace was not written; a warning of the script's process says why"
            return False
        status.phase, status.last = "recorded", last
        status.analyses = [*status.analyses, *analyses]
        self._cycle += 1
        if goes_on:
            self._after, self._steps = recording, 0
        return True

    def measure_after(self) -> StepKind:
        """An iteration after the recording begins; what is measured in it."""
        self._steps += 1
        kind = kind_outside(
            self._steps, None, leading=False, light_after=self.outside.light_due, light=self.light_is_possible()
        )
        self.outside.turn(kind)
        return kind

    def complete_after(self) -> None:
        """End the measurement after the recording."""
        recording, self._after = self._after, None
        if recording is not None:
            recording.handler.complete()
            self.outside.drop()

    def drop(self) -> None:
        """End what runs, without a trace of it."""
        recording, self.current = self.current, None
        self.complete_after()
        self.outside.drop()
        if recording is not None and not recording.failed:
            recording.drop()

    def forked(self) -> None:
        """Called in a forked child, whose profiler is a copy that records nothing."""
        self.current = None
        self.outside = OutsideSteps(self._request.run_directory)
        self.complete_after()
