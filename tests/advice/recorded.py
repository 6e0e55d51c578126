"""Recorded runs and jobs for the cases of rules."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
from support.recorded_runs import ROOT

from tb_dlprof_plugin.cli.open_profile import open_profile
from tb_dlprof_plugin.profile_view import ProfileView


@functools.cache
def opened(run: str) -> ProfileView:
    """The first profile of a run or job in `tests/data`, with all ranks of its session."""
    return open_profile(ROOT / "tests" / "data" / run)[0]


def recorded(run: str, **facts: Any) -> Callable[[Any], Any]:
    """Makes the view of a run in `tests/data`, with other facts where they are given."""
    return lambda _: with_facts(opened(run), **facts) if facts else opened(run)


def with_facts(view: ProfileView, **facts: Any) -> ProfileView:
    """The profile with other facts, alone."""
    return ProfileView(replace(view.profile, facts=msgspec.structs.replace(view.profile.facts, **facts)))


def filling(run: str, share: float, **facts: Any) -> Callable[[Any], Any]:
    """A run on a GPU of which it takes a share at its peak."""

    def view(_: Any) -> ProfileView:
        peak = opened(run).profile.facts.peak_memory_allocated_bytes
        assert peak is not None
        return with_facts(opened(run), available_memory_bytes=int(peak / share), **facts)

    return view
