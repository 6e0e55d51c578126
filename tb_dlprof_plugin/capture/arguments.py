"""Checks the arguments of the hook: a wrong one is left out with a warning, and the training goes on."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable
from typing import Any, TypeVar

from tb_dlprof_plugin.capture.warn import probe, warn

T = TypeVar("T")


def path_of(logdir: Any) -> str | None:
    """The path or address; None with a warning where it is neither."""
    path = probe(lambda: os.fsdecode(logdir))
    if not path:
        warn(f"Nothing is recorded: logdir must be a path, not {logdir!r}.")
    return path or None


def text(name: str, given: Any, default: T) -> str | T:
    """A text."""
    return _checked(name, given, lambda: given if isinstance(given, str) else None, "a str", default)


def path(name: str, given: Any, default: T) -> str | T:
    """A path."""
    return _checked(name, given, lambda: os.fsdecode(given), "a path", default)


def count(name: str, given: Any, default: T) -> int | T:
    """A whole number from 0 on."""
    return _checked(
        name, given, lambda: found if (found := operator.index(given)) >= 0 else None, "an int >= 0", default
    )


def seconds(name: str, given: Any, default: float) -> float:
    """A number from 0 on."""
    found = _checked(name, given, lambda: found if (found := float(given)) >= 0 else None, "seconds >= 0", default)
    return default if math.isinf(found) else found


def flag(name: str, given: Any, default: T) -> bool | T:
    """Whether something is so."""
    return _checked(name, given, lambda: bool(given), "True or False", default)


def _checked(name: str, given: Any, read: Callable[[], Any], wanted: str, default: Any) -> Any:
    if given is None:
        return default
    found = probe(read)
    if found is None:
        warn(f"{name}={given!r} is left out: it must be {wanted}.")
        return default
    return found
