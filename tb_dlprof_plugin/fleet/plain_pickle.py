"""Containers, texts and numbers of a pickle, as torch writes it (protocol 2) and Python writes plain containers.

Python's own unpickler in C takes as much memory as a pickle of ten bytes asks for (its memo is an array, up to the
largest number that is put there), so that the one in Python is used, without what makes objects.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any, ClassVar

_OBJECTS = frozenset(
    pickle.GLOBAL + pickle.STACK_GLOBAL + pickle.INST + pickle.OBJ + pickle.NEWOBJ + pickle.NEWOBJ_EX + pickle.REDUCE
    + pickle.BUILD + pickle.PERSID + pickle.BINPERSID + pickle.EXT1 + pickle.EXT2 + pickle.EXT4
    + pickle.BYTEARRAY8 + pickle.NEXT_BUFFER + pickle.READONLY_BUFFER
)  # fmt: skip
"""Operations that look up, make or fill anything but containers, texts and numbers, or reserve memory by a number."""


def plain_pickle(data: bytes) -> Any:
    """What the pickle holds.

    Raises:
        Exception: of any kind, where it is damaged or holds anything else.
    """
    return _Plain(io.BytesIO(data)).load()


def _refuse(unpickler: pickle.Unpickler) -> None:
    raise pickle.UnpicklingError("it holds more than containers, texts and numbers")


class _Plain(pickle._Unpickler):
    dispatch: ClassVar[dict[int, Callable[[pickle.Unpickler], None]]] = {
        **pickle._Unpickler.dispatch,
        **dict.fromkeys(_OBJECTS, _refuse),
    }

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it names {module}.{name}")
