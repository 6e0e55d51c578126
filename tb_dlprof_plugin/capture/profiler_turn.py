"""Our turns with torch's profiler, which the whole process has but once.

torch does not check who uses it, and two users end the process with SIGSEGV: the start of one between whose warm-up and
start another recorded; the end of one after that of another in a different thread. So nothing of ours starts while
another profiler warms up or records, and ours is ended before another starts.
"""

from __future__ import annotations

import enum
import functools
import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.autograd.profiler as autograd_profiler
import torch.autograd.profiler_legacy as legacy_profiler

from tb_dlprof_plugin.capture.forked_exit import let_forked_children_end
from tb_dlprof_plugin.capture.warn import probe

_STARTS = (
    (autograd_profiler, "_prepare_profiler"),
    (autograd_profiler, "_enable_profiler"),
    (legacy_profiler, "_enable_profiler_legacy"),
)
_ENDS = ((autograd_profiler, "_disable_profiler"), (legacy_profiler, "_disable_profiler_legacy"))
"""All profilers of torch, `emit_nvtx` and `emit_itt` too, call these by their names in these modules."""
_UNSEEN = 0
"""In place of the thread of a profiler that started before we watched."""


class _State(enum.Enum):
    OFF = "nothing is on"
    WARM = "the profiler warms up"
    ON = "the profiler records"
    STRANDED = "the profiler records, and another took its data from a different thread"


class ProfilerTurn:
    """The turn of one recording, from `watch` to `leave`.

    Args:
        on_lost: called before the recording ends because another profiler is about to start, in that one's thread; must
            not raise.
    """

    def __init__(self, on_lost: Callable[[], None]) -> None:
        self._on_lost = on_lost
        self._state = _State.OFF
        self._profiler: Any = None
        self._thread = 0

    def watch(self) -> None:
        """See other profilers from now on."""
        PROFILER.add(self, _nothing, _nothing)
        PROFILER.search()

    def leave(self) -> None:
        """See them no longer. A profiler that could not be ended yet stays watched."""
        if self._state is _State.OFF:
            PROFILER.remove(self)

    @property
    def is_free(self) -> bool:
        """Whether no other profiler warms up or records."""
        if PROFILER.threads or PROFILER.holder not in (None, self):
            return False
        return self._state is not _State.OFF or not _is_enabled()

    @contextmanager
    def using(self, profiler: Any) -> Iterator[None]:
        """Calls of this ``torch.profiler`` object in the block are ours."""
        before, _CURRENT.turn = _CURRENT.turn, self
        self._profiler = profiler
        try:
            yield
        finally:
            _CURRENT.turn = before

    def end(self) -> None:
        """End the profiler without its data. Call in the thread that started it; may raise what torch raises."""
        if self._state is _State.STRANDED:
            if not self.is_free:
                return
            with self.using(self._profiler):
                # torch takes the data out of a session that is over, unless a new one began.
                self._profiler.profiler._prepare_trace()
                self._state = _State.ON
        profiler, self._profiler = self._profiler, None
        with self.using(profiler):
            if self._state is _State.WARM:
                # As torch ends a warm-up.
                profiler.start_trace()
            if self._state is _State.ON:
                profiler.stop_trace()
        self._profiler, self._state = None, _State.OFF
        if profiler is not None:
            # Frees the data, and torch does not warn that it clears them.
            profiler.profiler = None

    @property
    def is_stranded(self) -> bool:
        """Whether `end` must be called again later."""
        return self._state is _State.STRANDED

    def started(self, prepares: bool) -> None:
        """torch prepared or started our profiler."""
        let_forked_children_end()
        self._state = _State.WARM if prepares else _State.ON
        self._thread = threading.get_ident()

    def ended(self) -> None:
        """torch ended our profiler."""
        self._state = _State.OFF

    def give_way(self) -> bool:
        """Another profiler is about to start. Returns whether ours has ended, which another thread cannot do."""
        self._on_lost()
        if threading.get_ident() == self._thread:
            probe(_end_ranges)
            probe(self.end)
            self._state = _State.OFF
            return True
        if self._state is _State.WARM:
            # The other one's preparation takes its place.
            self._state = _State.OFF
        else:
            # Only the thread that started it can end it, and not while the other one records.
            self._state = _State.STRANDED
        return False


class TorchProfiler:
    """Who uses torch's profiler in this process. There is one of it, `PROFILER`."""

    def __init__(self) -> None:
        self.holder: ProfilerTurn | None = None
        """The turn in which ours warms up or records."""
        self.threads: set[int] = set()
        """Those in which another profiler warms up or records."""
        # Threads that use a profiler are rarely two: no lock.
        self._watchers: dict[Any, tuple[Callable[[], None], Callable[[], None]]] = {}
        self._replaced: list[tuple[Any, str, Any, Any]] = []
        self._searched = False

    def add(self, watcher: Any, on_start: Callable[[], None], after_start: Callable[[], None]) -> None:
        """Watch until `remove`, with functions to call before and after each start; they must not raise."""
        if not self._watchers:
            for owner, name in (*_STARTS, *_ENDS):
                self._replace(owner, name, self._ends if (owner, name) in _ENDS else self._starts)
        self._watchers[watcher] = (on_start, after_start)

    def remove(self, watcher: Any) -> None:
        """Watch for this one no longer."""
        self._watchers.pop(watcher, None)
        if not self._watchers:
            for owner, name, original, replacement in self._replaced:
                if getattr(owner, name) is replacement:
                    setattr(owner, name, original)
            self._replaced, self.threads, self.holder, self._searched = [], set(), None, False

    def search(self) -> None:
        """Look for a profiler that warms up since before we watched."""
        if not self._searched:
            self._searched = True
            self.threads |= {_UNSEEN} if probe(_warms_up) else set()

    def _replace(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        original = getattr(owner, name, None)
        if original is not None:
            replacement = make(original)
            setattr(owner, name, replacement)
            self._replaced.append((owner, name, original, replacement))

    def _starts(self, original: Any) -> Any:
        prepares = getattr(original, "__name__", "") == "_prepare_profiler"

        @functools.wraps(original)
        def start(*args: Any, **kwargs: Any) -> Any:
            watchers = list(self._watchers.values())
            for on_start, _ in watchers:
                on_start()
            try:
                return self._start(original, prepares, args, kwargs)
            finally:
                for _, after_start in watchers:
                    after_start()

        return start

    def _start(self, original: Any, prepares: bool, args: Any, kwargs: Any) -> Any:
        turn = _CURRENT.turn
        if turn is not None:
            result = original(*args, **kwargs)
            self.holder = turn
            turn.started(prepares)
            return result
        holder, self.holder = self.holder, None
        left = holder is None or holder.give_way()
        known, here = self.threads, threading.get_ident()
        self.threads = known | {here}
        try:
            return original(*args, **kwargs)
        except BaseException as error:
            if prepares and not left and isinstance(error, RuntimeError):
                # torch 2.11 cannot cancel the recording of a different thread; the start takes its session over.
                return None
            self.threads = known
            raise

    def _ends(self, original: Any) -> Any:
        @functools.wraps(original)
        def end(*args: Any, **kwargs: Any) -> Any:
            turn = _CURRENT.turn
            try:
                return original(*args, **kwargs)
            finally:
                if turn is None:
                    self.threads = self.threads - {threading.get_ident(), _UNSEEN}
                else:
                    self.holder = None
                    turn.ended()

        return end


class _Current(threading.local):
    """The turn whose calls of torch this thread makes."""

    turn: ProfilerTurn | None = None


_CURRENT = _Current()
PROFILER = TorchProfiler()


def _nothing() -> None:
    return None


def _end_ranges() -> None:
    """End the open `record_function` ranges: an end within another profiler's recording would write to memory that was
    freed with ours. Their own end then does nothing."""
    for one in gc.get_objects():
        if type(one) is autograd_profiler.record_function and one.record is not None:
            torch.ops.profiler._record_function_exit._RecordFunction(one.record)


def _is_enabled() -> bool:
    """Whether a profiler records in this thread, or was started by Python in any."""
    here = probe(lambda: torch._C._autograd._profiler_enabled())
    return bool(here) or bool(autograd_profiler._is_profiler_enabled)


def _warms_up() -> bool:
    """Whether a profiler warms up, which nothing but its own object shows."""
    found = (one for one in gc.get_objects() if type(one) is autograd_profiler.profile)
    return any(getattr(one, "entered", False) and getattr(one, "kineto_results", None) is None for one in found)
