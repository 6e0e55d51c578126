"""A recorded step of a few ranks under each other: collectives on aligned clocks, and the work in between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
import numpy as np

from tb_dlprof_plugin.fleet.clocks import Alignment, align
from tb_dlprof_plugin.fleet.matching import Matched, match
from tb_dlprof_plugin.fleet.matching_alike import match_alike
from tb_dlprof_plugin.fleet.rank_facts import SYNCHRONISING, Operation, RankFacts
from tb_dlprof_plugin.model.formatting import duration as text_of
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.model.request import Option
from tb_dlprof_plugin.model.string_table import StringTable

_MOST_LINES = 16
"""Ranks under each other."""
_MOST_CALLS = 5_000
"""Of a rank: more are narrower than a pixel."""


class RankLine(msgspec.Struct, frozen=True):
    """The collectives of a rank in one step: columns in order of start, times in ns after the begin of the picture.

    ``begin_ns`` is where the rank's own step begins. ``work_ns`` is how long the GPU worked since the collective
    before, ``waiting_ns`` the part of the collective that it waited for others, ``name`` an index into
    `RankLinesPage.names`; equal numbers of ``match`` are one collective, -1 one that was not found on other ranks.
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


def _rank_numbers(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if len(parts) > _MOST_LINES or not all(part.isascii() and part.isdigit() and len(part) < 8 for part in parts):
        raise ValueError(f"must be up to {_MOST_LINES} numbers such as 0,5,9, not {text!r}.")
    return tuple(dict.fromkeys(map(int, parts)))


def rank_lines_page(
    facts: Sequence[RankFacts],
    ranks: Annotated[Sequence[int], Option("Numbers of ranks.", read=_rank_numbers)],
    step: Annotated[int | None, Option("Number of a step that all recorded; one in the middle by default.")] = None,
    numbers: Ints | None = None,
) -> RankLinesPage:
    """The lines of these ranks.

    Args:
        facts: of the whole job: clocks are aligned by all of it.
        numbers: of the steps whose calls are among the facts, where it is not all of them.

    Raises:
        KeyError: a rank or the step was not recorded; its argument says which, in words.
    """
    place = {one.rank: index for index, one in enumerate(facts)}
    for rank in ranks:
        if rank not in place:
            raise KeyError(f"rank {rank}")
    chosen = [place[rank] for rank in ranks]
    recorded = [set(facts[index].steps.number.tolist()) for index in chosen]
    common = sorted(set.intersection(*recorded, *([] if numbers is None else [set(numbers.tolist())])))
    if not common:
        raise KeyError("step that all of these ranks recorded")
    number = common[len(common) // 2] if step is None else step
    if number not in common:
        raise KeyError(f"step {number} of these ranks")
    matched = match_alike(facts) or match(facts)
    alignment = align(facts, matched)
    names = StringTable()
    found = [_StepOfRank(facts[index], index, number, alignment) for index in chosen]
    waiting, collective = _members(facts, matched, chosen)
    begin = min(line.begin for line in found)
    lines = [line.drawn(begin, waiting, collective, names) for line in found]
    return RankLinesPage(
        step=number,
        length_ns=max(line.end for line in found) - begin,
        clocks=_sentence(alignment),
        names=names.values,
        lines=lines,
    )


class _StepOfRank:
    """The rows of a rank in one step, and their times on the common clock."""

    def __init__(self, facts: RankFacts, index: int, number: int, alignment: Alignment) -> None:
        self.facts, self.index = facts, index
        iteration = int(np.flatnonzero(facts.steps.number == number)[0])
        rows = np.flatnonzero(facts.collectives.iteration == iteration)
        self.rows = rows[np.argsort(facts.collectives.start_ns[rows], kind="stable")][:_MOST_CALLS]
        ends = np.array([facts.steps.start_ns[iteration], facts.steps.end_ns[iteration]])
        self.begin, self.end = map(int, alignment.aligned_ns(index, facts.base_ns + ends))
        self.start = alignment.aligned_ns(index, facts.base_ns + facts.collectives.start_ns[self.rows])
        self.end = max(self.end, int((self.start + facts.collectives.duration_ns[self.rows]).max(initial=self.end)))

    def drawn(self, begin: int, waiting: dict[int, Ints], collective: dict[int, Ints], names: StringTable) -> RankLine:
        calls = self.facts.collectives
        duration = calls.duration_ns[self.rows]
        return RankLine(
            rank=self.facts.rank,
            begin_ns=self.begin - begin,
            start_ns=(self.start - begin).tolist(),
            duration_ns=duration.tolist(),
            waiting_ns=np.minimum(waiting[self.index][self.rows], duration).tolist(),
            work_ns=np.maximum(calls.work_ns[self.rows], 0).tolist(),
            name=[names.add(_name(self.facts, row)) for row in self.rows.tolist()],
            match=collective[self.index][self.rows].tolist(),
        )


def _name(facts: RankFacts, row: int) -> str:
    calls = facts.collectives
    parts = [Operation(int(calls.operation[row])).name.lower().replace("_", "-")]
    if calls.group[row] >= 0 and (dimension := facts.groups[calls.group[row]].dimension):
        parts.append(f"over {dimension}")
    if calls.module[row] >= 0:
        parts.append(f"of {facts.strings[calls.module[row]]}")
    return " ".join(parts)


def _members(
    facts: Sequence[RankFacts], matched: Matched, chosen: Sequence[int]
) -> tuple[dict[int, Ints], dict[int, Ints]]:
    """By rank, for each of its calls: how long it waited (ns), and the number of its collective, -1 for none."""
    waiting = {index: np.zeros(len(facts[index].collectives), dtype=np.int64) for index in chosen}
    number = {index: np.full(len(facts[index].collectives), -1, dtype=np.int64) for index in chosen}
    if not len(matched):
        return waiting, number
    begins = np.cumsum([0, *(len(one.collectives) for one in facts)])
    durations = np.concatenate([one.collectives.duration_ns for one in facts])
    duration = durations[begins[matched.rank_index] + matched.row]
    transfer = np.minimum.reduceat(duration, matched.first[:-1])
    sizes = np.diff(matched.first)
    waits = np.repeat(np.isin(matched.operation, list(SYNCHRONISING)), sizes)
    waited = np.where(waits, duration - np.repeat(transfer, sizes), 0)
    collective = np.repeat(np.arange(len(matched)), sizes)
    for index in chosen:
        here = matched.rank_index == index
        waiting[index][matched.row[here]] = waited[here]
        number[index][matched.row[here]] = collective[here]
    return waiting, number


def _sentence(alignment: Alignment) -> str:
    if alignment.uncertainty_ns is None:
        return "No collective tells how far apart the clocks of these ranks are: they are drawn as recorded."
    return (
        f"Clocks are aligned to {text_of(alignment.uncertainty_ns)} by the ends of {alignment.collectives} collectives."
    )
