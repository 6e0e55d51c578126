"""The one error that reading a trace raises."""

from __future__ import annotations


class TraceError(Exception):
    """A trace that cannot be read. The message is one sentence that names the file and says what to do."""
