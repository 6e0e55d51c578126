"""Measures the steps that follow a recording made by the user's own ``torch.profiler.profile``.

torch's profiler calls one method at each step boundary and at its end, with the actions before and after it. While a
profiler is followed, that method of the class is wrapped; calls for other profilers pass through. (An attribute of the
one object would be copied with it.)
"""

from __future__ import annotations

import functools
import weakref
from typing import Any, Protocol

from torch.profiler import ProfilerAction, profile

from tb_dlprof_plugin.capture.around_window import OutsideSteps
from tb_dlprof_plugin.capture.cycle import StepKind, StepKinds
from tb_dlprof_plugin.capture.light_window import light_would_say_more
from tb_dlprof_plugin.capture.warn import probe

_FUNCTION = "_transit_action"
_followed: weakref.WeakKeyDictionary[Any, _Follower] = weakref.WeakKeyDictionary()


class FollowedHandler(Protocol):
    """A handler whose recording has ended."""

    @property
    def outside(self) -> OutsideSteps:
        """Times of the steps around the recording."""

    @property
    def awaits_after(self) -> bool:
        """Whether steps after the recording are still wanted."""

    def complete(self) -> None:
        """No step follows."""

    def set_hooks(self, on: bool) -> None:
        """Switch the hooks of model and optimizer."""


def follow(handler: FollowedHandler, prof: Any) -> bool:
    """Measure the steps after the recording that ``prof`` has just ended, for ``handler``. Returns whether there may be
    any.

    There are none where the block ends with the recording, where the next one follows at once, and where the profiler
    has no schedule, so that `step` is not called.
    """
    if not isinstance(prof, profile) or not hasattr(profile, _FUNCTION) or not getattr(prof, "record_steps", False):
        return False
    if prof.current_action is not ProfilerAction.NONE:
        return False
    _followed[prof] = _Follower(handler, light_would_say_more(prof.activities))
    if not hasattr(getattr(profile, _FUNCTION), "follows"):
        setattr(profile, _FUNCTION, _following(getattr(profile, _FUNCTION)))
    # Model and optimizer run without hooks.
    handler.set_hooks(on=False)
    return True


class _Follower:
    """Follows one profiler through a weak reference."""

    def __init__(self, handler: FollowedHandler, light: bool) -> None:
        self._handler = handler
        self._kinds = StepKinds(light)

    def boundary(self, prof: Any, following: ProfilerAction | None) -> None:
        """A step ended, and one with this action begins; None if the profiler stops."""
        handler, outside = self._handler, self._handler.outside
        if following is None:
            # Usually in the middle of a step, or after the last one.
            self.leave(prof)
            return
        if following is not ProfilerAction.NONE:
            outside.end(StepKind.FULL)
            self.leave(prof)
            return
        outside.turn(self._kinds.outside(prof.schedule, prof.step_num, leading=False, light_after=outside.light_due))
        if outside.after_is_over() or not handler.awaits_after:
            self.leave(prof)

    def leave(self, prof: Any) -> None:
        """Stop following."""
        _followed.pop(prof, None)
        _restore()
        self._handler.complete()
        probe(self._handler.outside.drop)
        self._handler.set_hooks(on=True)


def _following(original: Any) -> Any:
    @functools.wraps(original)
    def transit_action(self: Any, prev_action: Any, current_action: Any) -> Any:
        follower = _followed.get(self)
        if follower is not None:
            try:
                follower.boundary(self, current_action)
            except Exception:
                probe(lambda: follower.leave(self))
        return original(self, prev_action, current_action)

    transit_action.follows = original  # type: ignore[attr-defined]
    return transit_action


def _restore() -> None:
    """Restore torch's own method if no profiler is followed, and no other code has replaced it since."""
    original = getattr(getattr(profile, _FUNCTION), "follows", None)
    if not _followed and original is not None:
        setattr(profile, _FUNCTION, original)
