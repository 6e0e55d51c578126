"""A view goes to another process and answers the same there."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.run_ref import RunRef
from tb_dlprof_plugin.web.routes import PAGES

REF = RunRef("run", "s", 0, 0)


def _page(view: ProfileView, name: str) -> bytes:
    return msgspec.json.encode(PAGES[name].load_page()(view, REF, view.selection()))


def _pages_elsewhere(pickled: bytes, names: list[str]) -> list[bytes]:
    view = pickle.loads(pickled)
    return [_page(view, name) for name in names]


@pytest.fixture
def view(training: Callable[..., Any]) -> ProfileView:
    """Rank 0 of two."""
    profile = training("fp16").profile(session="s")
    other = replace(profile, source=replace(profile.source, rank=1))
    return ProfileView(profile, lambda: [ProfileView(other)])


def test_a_view_of_which_pages_were_made_makes_the_same_in_a_spawned_process(view: ProfileView) -> None:
    names = list(PAGES)
    expected = [_page(view, name) for name in names]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply(_pages_elsewhere, (pickle.dumps(view), names))
    assert dict(zip(names, found, strict=True)) == dict(zip(names, expected, strict=True))
    assert b"rank 1 0.22 ms" in expected[names.index("advice")]


def test_a_copy_has_the_ranks_and_none_of_the_answers(view: ProfileView) -> None:
    before = len(pickle.dumps(view))
    _page(view, "advice")
    pickled = pickle.dumps(view)
    copy = pickle.loads(pickled)
    assert len(pickled) == before
    assert view.answers
    assert not copy.answers
    assert [one.profile.source.rank for one in copy.ranks] == [0, 1]
    assert copy.ranks[0] is copy
    assert ProfileView(view.profile).ranks == ()
