"""The direction of an op: forward or backward, as pages, commands and the Python API name it, and as DLProf does."""

from __future__ import annotations

from typing import Literal

from tb_dlprof_plugin.model.profile import Role

Direction = Literal["forward", "backward", ""]
"""Empty for what is in neither pass: optimizers, copies, data loading."""

DLPROF_DIRECTIONS: dict[Direction, str] = {"forward": "fprop", "backward": "bprop", "": ""}
"""What DLProf's reports call them, and what earlier versions accepted everywhere."""

_OF_ROLE: dict[int, Direction] = {Role.FORWARD: "forward", Role.BACKWARD: "backward"}
_TYPED: dict[str, Direction] = {
    spelling: direction for direction, former in DLPROF_DIRECTIONS.items() for spelling in (direction, former)
}


def direction_of(role: int) -> Direction:
    """The direction of a `Role`."""
    return _OF_ROLE.get(role, "")


def read_direction(text: str | None) -> Direction:
    """The direction that a user typed, in today's or in DLProf's word; "" (both) for nothing.

    Raises:
        ValueError: there is no such direction; one sentence that says what there is.
    """
    found = _TYPED.get(text or "")
    if found is None:
        raise ValueError(f"there is no direction {text!r}; it is forward or backward")
    return found


def direction_words(role: int) -> str:
    """What a search finds the direction of a role by: both spellings, or nothing."""
    direction = direction_of(role)
    return f"{direction} {DLPROF_DIRECTIONS[direction]}".strip()


def with_direction(name: str, direction: Direction) -> str:
    """A name with its direction, where it has one: "conv1/conv2d (backward)"."""
    return f"{name} ({direction})" if direction else name
