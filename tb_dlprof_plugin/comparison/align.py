"""Aligns two sequences: returns the pairs of equal elements, in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from difflib import SequenceMatcher

_MOST_CELLS = 1_000_000
"""Beyond this size, unequal parts are paired by running number: a full alignment would take minutes."""


def align(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Pairs of indices of equal elements, both rising; as `difflib` aligns lines."""
    low = 0
    while low < min(len(a), len(b)) and a[low] == b[low]:
        low += 1
    same = 0
    while same < min(len(a), len(b)) - low and a[-1 - same] == b[-1 - same]:
        same += 1
    pairs = [(i, i) for i in range(low)]
    inner_a, inner_b = a[low : len(a) - same], b[low : len(b) - same]
    if len(inner_a) * len(inner_b) > _MOST_CELLS:
        pairs += [(i + low, j + low) for i, j in _by_running_number(inner_a, inner_b)]
    elif inner_a and inner_b:
        blocks = SequenceMatcher(None, inner_a, inner_b, autojunk=False).get_matching_blocks()
        pairs += [(i + n + low, j + n + low) for i, j, size in blocks for n in range(size)]
    return pairs + [(len(a) - n, len(b) - n) for n in range(same, 0, -1)]


def _by_running_number(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[tuple[int, int]]:
    """The first of a kind with the first of that kind; the order across kinds is not kept."""
    places: dict[Hashable, list[int]] = defaultdict(list)
    for index in reversed(range(len(b))):
        places[b[index]].append(index)
    return [(index, places[item].pop()) for index, item in enumerate(a) if places[item]]
