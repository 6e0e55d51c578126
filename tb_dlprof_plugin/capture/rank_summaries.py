"""Each rank of a long training writes profile and facts of a few of its steps again and again: one line, no traces.

``tb_dlprof_plugin.summarize_ranks("s3://bucket/runs/llama")`` before the loop is enough: a step ends with that of the
optimizer. Every so many steps a few are recorded on all ranks, and a separate process makes the profile, which is all
that is left.
"""

from __future__ import annotations

import atexit
import os
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Any

from torch.compiler import is_compiling
from torch.optim.optimizer import register_optimizer_step_post_hook

from tb_dlprof_plugin.capture.session import ProfileSession, profile
from tb_dlprof_plugin.capture.warn import probe, warn

EVERY = 1000
"""Steps from one recording to the next: of 0.5 s each, one in eight minutes."""
STEPS = 3
"""Recorded steps: fewer show no spread (`fleet.answers.delays`)."""
_WARMUP = 2


def summarize_ranks(
    logdir: str | os.PathLike[str],
    *,
    every: int = EVERY,
    steps: int = STEPS,
    model: Any = None,
    dataloader: Any = None,
    optimizer: Any = None,
    session: str | None = None,
    rank: int | None = None,
    **profiler_options: Any,
) -> RankSummaries:
    """Begin to record a few steps of this rank in every so many, for `distributed` and the page Distributed.

    Call it on each rank before the training's loop. A step of the training ends with that of its first optimizer, or
    where the loop calls ``step()`` on the result, with that. It ends with the process, or by ``stop()``. Nothing here
    raises into the training.

    Args:
        logdir: the run's directory or address, the same on all ranks. A profile of a rank has 0.1 to 1 MB.
        every: steps from one recording to the next; the last ones of these are recorded. The same on all ranks.
        steps: how many are recorded.
        model: names ops after its modules; by default there are no hooks on it.
        profiler_options: further arguments of `tb_dlprof_plugin.profile`.

    The other arguments are those of `trace_handler`.
    """
    steps = max(steps, 1)
    wait = every - steps - _WARMUP
    if wait < 0:
        warn(f"Recording {steps} of every {every} steps leaves none to warm up; recording each {steps + _WARMUP}.")
    options = {"keep_trace": False, "pytorch_views": False, "quiet": True, **profiler_options}
    recording = profile(
        logdir,
        model=model,
        dataloader=dataloader,
        optimizer=optimizer,
        schedule={"wait": max(wait, 0), "warmup": _WARMUP, "active": steps, "repeat": 0},
        session=session,
        rank=rank,
        wait=False,
        **options,
    )
    return RankSummaries(recording)


class RankSummaries:
    """What `summarize_ranks` returns. A ``with`` block ends it, too."""

    def __init__(self, session: ProfileSession) -> None:
        self.session = session
        self._optimizer: Callable[[], Any] = _none
        self._handle: Any = None
        session.start()
        self._handle = probe(lambda: register_optimizer_step_post_hook(self._stepped))
        atexit.register(self.stop)

    def step(self) -> None:
        """A step of the training is over: for loops without an optimizer of torch's, and those that step it twice."""
        if self._handle is not None:
            counted = self._optimizer() is not None
            self._unhook()
            if counted:
                return
        self.session.step()

    def stop(self) -> None:
        """End. A recording that has begun is dropped, and what was recorded before is analysed."""
        atexit.unregister(self.stop)
        self._unhook()
        self.session.stop_unfinished()

    def __enter__(self) -> RankSummaries:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if is_compiling():
            return
        # The first of several optimizers, as long as it lives.
        first = self._optimizer()
        if first is None:
            self._optimizer = probe(lambda: weakref.ref(optimizer)) or _none
        elif first is not optimizer:
            return
        self.session.step()

    def _unhook(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            probe(handle.remove)


def _none() -> None:
    return None
