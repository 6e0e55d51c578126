"""Reports failures of the hook: as a warning, or as a log record if warnings are errors."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Callable
from typing import TypeVar

from tb_dlprof_plugin.model.visible import visible

T = TypeVar("T")


class TbDlprofWarning(UserWarning):
    """Something about the profile is missing; the training is not affected."""


def warn(message: str) -> None:
    """Issue a warning; log instead if the user turned warnings into errors. Never raises."""
    try:
        warnings.warn(visible(message), TbDlprofWarning, stacklevel=_stacklevel())
    except Exception:
        logging.getLogger("tb_dlprof_plugin").warning(visible(message))


def probe(read: Callable[[], T]) -> T | None:
    """What ``read`` returns, or None if it raises: one unreadable fact must not cost the others."""
    try:
        return read()
    except Exception:
        return None


def _stacklevel() -> int:
    """Of the innermost frame outside this package: the user's line, or torch's that called the handler."""
    here = os.path.dirname(__file__)
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == here:
        level, frame = level + 1, frame.f_back
    return level
