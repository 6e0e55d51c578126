"""Names of Python frames, as torch's Python tracer writes them: "train.py(12): step", "torch/_ops.py(1079): __call__".

The number is the line where the function begins, or, of a function that ran when the recording began, the line that it
had reached. Paths are relative to the entry of ``sys.path`` that holds them, so that torch's own begin with "torch/".
"""

from __future__ import annotations

import re

_FRAME = re.compile(r"(?P<path>[^<].*?\.pyx?)\((?P<line>\d+)\): (?P<function>.+)", re.DOTALL)
_NOT_THE_USERS = re.compile(
    r"(?:^|(?:site|dist)-packages/)(?:torch|tb_dlprof_plugin)/"
    # Of the standard library what calls the user's functions or wraps them.
    r"|(?:^|/)(?:contextlib|functools|runpy|threading|typing)\.py$"
    r"|/tb_dlprof_plugin/(?:capture|commands)/[^/]+\.py$"
)


def place_of(name: str) -> str:
    """ "train.py:12 step" of a frame's name; "" for one of torch, of this package, or without a file."""
    match = _FRAME.fullmatch(name)
    if match is None:
        return ""
    path = match["path"].replace("\\", "/")
    return "" if _NOT_THE_USERS.search(path) else f"{path}:{match['line']} {match['function']}"
