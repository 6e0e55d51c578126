"""First uses of msgspec's types, by one thread at a time.

msgspec describes a type when it is first used and keeps that with the type. Two threads that do so at the same moment
free what the other one reads: the process ends with a segmentation fault (seen with msgspec 0.22). A decoder that a
module makes when it is imported is safe, because one thread imports a module. All others come from here.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar

import msgspec

_T = TypeVar("_T")
_FIRST_USE = threading.RLock()


def json_decoder(kind: type[_T] | Any, strict: bool = True) -> msgspec.json.Decoder[_T]:
    """A decoder of JSON for a type; after that, any thread may use the type."""
    with _FIRST_USE:
        return msgspec.json.Decoder(kind, strict=strict)
