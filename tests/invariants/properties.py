"""Properties that recordings have, and how one recording is checked against all those of a file.

A property is a function of a recording that asserts something. It raises `NotRecorded` for a recording that lacks what
it is about; since a property that passes over every recording checks nothing, such a one names recordings that it must
not pass over.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from invariants.conftest import Recording

Check = Callable[["Recording"], None]
_LOOPED = ("selection", "chosen", "page", "name", "figure", "row", "index")
"""Variables of loops over parts of a recording: a failure says what they were."""


class NotRecorded(Exception):
    """The recording lacks what the property is about."""


@dataclass(frozen=True)
class Property:
    """``seen_in`` are recordings that have what it is about; None for a property of every recording."""

    check: Check
    seen_in: tuple[str, ...] | None

    @property
    def name(self) -> str:
        return self.check.__name__

    def failure(self, recording: Recording) -> str | None:
        """What is wrong with a recording. Raises `NotRecorded` where the property may pass over it, and does."""
        try:
            self.check(recording)
        except NotRecorded as reason:
            if self.seen_in is not None and recording.name not in self.seen_in:
                raise
            return f"{self.name}: passed over, though it must not be: {reason}"
        except Exception as error:
            text = "".join(traceback.format_exception(error))
            return f"{self.name}{_loop_variables(error.__traceback__)}:\n{text}"
        return None


class Properties(list[Property]):
    """The properties of one file."""

    def of_every_recording(self, check: Check) -> Check:
        """Decorator: the property never raises `NotRecorded`."""
        self.append(Property(check, None))
        return check

    def seen_in(self, *names: str) -> Callable[[Check], Check]:
        """Decorator: the property may pass over a recording, but not over these."""
        assert names

        def add(check: Check) -> Check:
            self.append(Property(check, names))
            return check

        return add

    def assert_hold(self, recording: Recording) -> None:
        """Fails with every property that the recording does not have, and where all of them pass over it."""
        failures, passed_over = [], 0
        for one in self:
            try:
                if text := one.failure(recording):
                    failures.append(text)
            except NotRecorded:
                passed_over += 1
        assert passed_over < len(self), f"{recording.name} has nothing that these properties are about: leave it out"
        if failures:
            head = f"{len(failures)} of {len(self)} properties fail in {recording.name}"
            pytest.fail("\n\n".join([head, *failures]), pytrace=False)


def _loop_variables(trace: TracebackType | None) -> str:
    """Which selection, page and so on the test functions were at."""
    found: dict[str, str] = {}
    while trace is not None:
        view = trace.tb_frame
        if Path(view.f_code.co_filename).parent == Path(__file__).parent:
            found |= {name: repr(view.f_locals[name])[:200] for name in _LOOPED if name in view.f_locals}
        trace = trace.tb_next
    return " with " + ", ".join(f"{name} = {value}" for name, value in found.items()) if found else ""
