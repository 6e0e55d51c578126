"""The choice of a run's profile, and of its iterations: the same options in commands, routes and addresses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tb_dlprof_plugin.model.request import Option, Request
from tb_dlprof_plugin.model.visible import VisibleMessage


@dataclass(frozen=True, kw_only=True)
class ProfileChoice(Request):
    """A profile of a run: by default of the newest session the lowest rank, of that the last cycle."""

    cycle: Annotated[int | None, Option("Profiling cycle; the last one by default.")] = None
    rank: Annotated[int | None, Option("Rank; the lowest one by default.")] = None
    session: Annotated[
        str | None, Option("Session: one start of the training; the newest one by default.", metavar="NAME")
    ] = None


@dataclass(frozen=True, kw_only=True)
class RangeChoice(ProfileChoice):
    """A range of its iterations, by default all: indices ``first`` to ``last``, both inclusive."""

    first: Annotated[int | None, Option("Index of the first iteration to aggregate, counted from 0.")] = None
    last: Annotated[int | None, Option("Index of the last iteration to aggregate, inclusive.")] = None


class KeyNodeError(VisibleMessage, ValueError):
    """There is no such key node; the message is one sentence with candidate ops."""
