"""Structs made of others with the same fields."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

_Struct = TypeVar("_Struct", bound=msgspec.Struct)


def struct_from(kind: type[_Struct], *sources: object, **own: Any) -> _Struct:
    """A struct with these fields of its own, and the others from the sources that have them by the same name.

    The first source that has a field counts. A source that is None is unknown: so is then what no other has.
    """
    for name in kind.__struct_fields__:
        if name not in own:
            source = next((source for source in sources if hasattr(source, name)), None)
            if source is not None:
                own[name] = getattr(source, name)
            elif None in sources:
                own[name] = None
    return kind(**own)
