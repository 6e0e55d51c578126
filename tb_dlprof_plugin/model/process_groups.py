"""A process group of a distributed training, as the recording of one of its ranks names it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MOST_MEMBERS = 2**22
"""Of all groups of a rank: more than any training has."""


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """A group.

    Attributes:
        name: as PyTorch numbers it, such as "3"; the same name may be another group on another rank.
        description: what the group is for, such as "mesh_tp" or "default_pg"; "" where not recorded.
        members: global ranks in the group's order; () where not recorded.
    """

    name: str
    description: str = ""
    members: tuple[int, ...] = ()


def regular_runs(members: Sequence[int]) -> list[int]:
    """The members as runs of equal strides: first, stride and count of each."""
    result: list[int] = []
    at = 0
    while at < len(members):
        stride = members[at + 1] - members[at] if at + 1 < len(members) else 1
        end = at + 1
        while end < len(members) and members[end] - members[end - 1] == stride:
            end += 1
        result += [members[at], stride, end - at]
        at = end
    return result


def members_of_runs(runs: Iterable[int]) -> tuple[int, ...]:
    """The members that `regular_runs` wrote.

    Raises:
        ValueError: the runs are cut short, or have more members than there can be.
    """
    numbers = list(runs)
    if len(numbers) % 3:
        raise ValueError("the members of a process group are cut short")
    triples = list(zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True))
    if sum(max(0, count) for *_, count in triples) > MOST_MEMBERS:
        raise ValueError("a process group has more members than any")
    members = tuple(first + stride * index for first, stride, count in triples for index in range(count))
    if any(not 0 <= member < 2**31 for member in members):
        raise ValueError("a process group has a member that is no rank")
    return members
