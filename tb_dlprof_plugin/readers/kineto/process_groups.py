"""Process groups from a trace's ``distributedInfo`` and from the arguments of communication calls.

Kineto cuts a list of ranks that is longer than 30 to its first 29, "..." and the last; with "Global rank start" and
"Global rank stride" the members of a regular group are known all the same.
"""

from __future__ import annotations

import re
from typing import Any

from tb_dlprof_plugin.model.process_groups import MOST_MEMBERS, ProcessGroup

_LARGEST_RANK = 2**31 - 1
_LIST = re.compile(r"\[?\s*(\d{1,10}(?:\s*,\s*\d{1,10})*)?\s*\]?\Z")


def whole_number(value: Any, largest: int) -> int:
    """A number from 0 up that may be written as text; -1 for what is none."""
    if isinstance(value, str) and len(value) <= 20 and value.isascii() and value.strip().isdigit():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= largest else -1


def text_of(value: Any) -> str:
    """A name, which may be written as a number; "" for what is none."""
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else ""


def members_of(ranks: Any, size: Any = None, start: Any = None, stride: Any = None) -> tuple[int, ...]:
    """The members of a group; () where they are not known.

    Args:
        ranks: a list of numbers, or the text of one, which may be cut.
        size, start, stride: of a regular group.
    """
    if isinstance(ranks, str):
        match = _LIST.match(ranks.strip())
        ranks = [int(rank) for rank in match[1].split(",")] if match and match[1] else []
    members = ranks if isinstance(ranks, list) else []
    count, first, step = (whole_number(one, _LARGEST_RANK) for one in (size, start, stride))
    sound = all(0 <= whole_number(rank, _LARGEST_RANK) == rank for rank in members)
    if members and sound and len(members) <= MOST_MEMBERS:
        return tuple(members)
    if 0 < count <= MOST_MEMBERS and first >= 0 and step > 0 and first + step * (count - 1) <= _LARGEST_RANK:
        return tuple(range(first, first + step * count, step))
    return ()


def described_groups(config: Any) -> list[ProcessGroup]:
    """The groups that ``distributedInfo.pg_config`` lists."""
    entries = config if isinstance(config, list) else []
    return [
        ProcessGroup(text_of(one.get("pg_name")), text_of(one.get("pg_desc")), members_of(one.get("ranks")))
        for one in entries
        if isinstance(one, dict)
    ]


def completed(groups: list[ProcessGroup], described: list[ProcessGroup]) -> list[ProcessGroup]:
    """The groups of the calls with what the header says about those of the same name, then the header's others."""
    by_name = {group.name: group for group in described if group.name}
    result = []
    for group in groups:
        known = by_name.pop(group.name, None)
        if known is not None:
            members = known.members if len(known.members) >= len(group.members) else group.members
            group = ProcessGroup(group.name, group.description or known.description, members)
        result.append(group)
    return result + list(by_name.values())
