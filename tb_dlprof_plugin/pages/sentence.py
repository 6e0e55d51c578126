"""A page's first sentence in pieces: plain text, and names that lead to what they name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

Named = Literal["op", "op_type", "module", "kernel", ""]


class TextPart(msgspec.Struct, frozen=True):
    """A piece of a sentence. With a ``kind`` it is the name of the item of this ``id``; an op type's id is its name."""

    text: str
    kind: Named
    id: str


def plain(text: str) -> TextPart:
    """Text that leads nowhere."""
    return TextPart(text, "", "")


def text_of(parts: Iterable[TextPart]) -> str:
    """The whole sentence."""
    return "".join(part.text for part in parts)
