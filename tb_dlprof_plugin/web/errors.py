"""Errors that the page shows as one sentence."""

from __future__ import annotations


class RequestError(Exception):
    """A request that cannot be answered: ``status`` for HTTP, the message for people."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
