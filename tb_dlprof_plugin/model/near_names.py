"""Finds the name that was meant by one that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LEAST_RATIO = 0.75
"""`difflib`'s measure, 2 * characters in common / characters of both. Ours: one wrong letter in a short name, or two
swapped ones, is above; names that only end alike ("mlp/fp32" and "vgg/tf32") are below."""
_AS_NEAR = 0.02
"""A name that is this much less near than the nearest is offered, too."""
_MOST = 3


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """The known names that are nearest to ``name``, best first; empty if none is near. Case does not count.

    Where a name lacks only its first directories, those that it ends.
    """
    by_key: dict[str, str] = {}
    for one in sorted(known):
        by_key.setdefault(one.lower(), one)
    if ends := [one for key, one in by_key.items() if key.endswith(f"/{name.lower()}")]:
        return ends[:_MOST]
    found = difflib.get_close_matches(name.lower(), by_key, _MOST, _LEAST_RATIO)
    ratios = {one: difflib.SequenceMatcher(None, one, name.lower()).ratio() for one in found}
    return [by_key[one] for one in found if ratios[one] >= ratios[found[0]] - _AS_NEAR]


def did_you_mean(names: Iterable[str]) -> str:
    """Such as "did you mean resnet50/fp32 or resnet50/tf32?"; "" without names."""
    text = " or ".join(names)
    return f"did you mean {text}?" if text else ""
