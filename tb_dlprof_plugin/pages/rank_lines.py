"""One recorded step of a few ranks under each other: their collectives on aligned clocks, and how much they worked in between."""

from __future__ import annotations

import msgspec


class RankLine(msgspec.Struct, frozen=True):
    """The collectives of a rank in one step: columns in order of their start, times in ns after the begin of the picture.

    ``begin_ns`` is where the rank's own step begins. ``work_ns`` is how long the GPU worked since the collective before, ``waiting_ns`` the part
    of the collective that it waited for others, ``name`` an index into `RankLinesPage.names`; equal numbers of ``match`` are one collective,
    -1 is one that was not found on the other ranks.
    """

    rank: int
    begin_ns: int
    start_ns: list[int]
    duration_ns: list[int]
    waiting_ns: list[int]
    work_ns: list[int]
    name: list[int]
    match: list[int]


class RankLinesPage(msgspec.Struct, frozen=True):
    """A step of the ranks that were asked for. ``clocks`` says how well their clocks are aligned."""

    step: int
    length_ns: int
    clocks: str
    names: list[str]
    lines: list[RankLine]
def rank_lines_page(facts, ranks, step) -> RankLinesPage: raise NotImplementedError
