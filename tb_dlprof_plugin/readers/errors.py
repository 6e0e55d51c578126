"""The error that reading a trace raises, and those of decoding."""

from __future__ import annotations

import msgspec

from tb_dlprof_plugin.model.visible import VisibleMessage

UNDECODABLE = (msgspec.DecodeError, RecursionError, ValueError)
"""What msgspec raises for text that it cannot decode: bad UTF-8 and numbers of thousands of digits are ValueErrors."""


class TraceError(VisibleMessage):
    """A trace that cannot be read. The message is one sentence that names the file and says what to do."""
