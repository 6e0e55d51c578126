"""A process group of a distributed training, as the recording of one of its ranks names it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

from tb_dlprof_plugin.model.column import SIGNED, Form

MEMBER_BYTES = 40
"""Of a member: a number, and its place among the members."""
MOST_MEMBERS = 2**22
"""More than any training has."""


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


def members_of_runs(runs: Sequence[int], may_take: Callable[[int], bool]) -> tuple[int, ...]:
    """The members that `regular_runs` wrote; () as if they were not recorded where they may not take their room.

    Args:
        runs: of any numbers.
        may_take: whether there are so many bytes left for them, asked before they are made.

    Raises:
        ValueError: the runs are cut short, or have members that there cannot be.
    """
    if len(runs) % 3:
        raise ValueError("the members of a process group are cut short")
    count_of_all = sum(max(0, count) for count in runs[2::3])
    if count_of_all > MOST_MEMBERS:
        raise ValueError("a process group has more members than any")
    if not may_take(MEMBER_BYTES * count_of_all):
        return ()
    triples = zip(runs[::3], runs[1::3], runs[2::3], strict=True)
    members = tuple(first + stride * index for first, stride, count in triples for index in range(count))
    if any(not 0 <= member < 2**31 for member in members):
        raise ValueError("a process group has a member that is no rank")
    return members


MEMBER_RUNS = Form(Annotated[list[int], SIGNED], regular_runs, members_of_runs)
"""How the members of a group are stored."""


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
    members: Annotated[tuple[int, ...], MEMBER_RUNS] = ()
