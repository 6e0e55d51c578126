"""Which profile of a run is meant, and what of it is kept."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.model.run_choice import KeyNodeError
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store import profile_store
from tb_dlprof_plugin.store.choice import (
    MOST_RANKS,
    NoSuchProfile,
    StoredBlob,
    choose,
    newest_of_ranks,
    newest_of_runs,
    ranks_together,
)
from tb_dlprof_plugin.store.codec import ProfileError, decode, encode
from tb_dlprof_plugin.store.event_file import write_profile
from tb_dlprof_plugin.store.logdir import EventFileStore, read_profiles, runs_below
from tb_dlprof_plugin.store.profile_store import KeptViews, ProfileStore, TooManyIterations
from tb_dlprof_plugin.store.run_ref import RunRef


@dataclass(frozen=True, slots=True)
class _Blob(StoredBlob):
    data: bytes = b""

    def read(self) -> bytes:
        return self.data


def _blob(session: str, rank: int = 0, cycle: int = 0, run: str = "run", data: bytes = b"") -> _Blob:
    return _Blob(RunRef(run, session, rank, cycle), (run, session, rank, cycle, data), data)


@dataclass
class _Source:
    """Blobs in memory; ``listed`` counts how often they were asked for."""

    stored: list[_Blob]
    listed: int = field(default=0)

    def blobs(self, runs: Collection[str] | None = None) -> list[_Blob]:
        self.listed += 1
        return [one for one in self.stored if runs is None or one.ref.run in runs]


# Session "2" is newest and has no rank 2; of its ranks only rank 1 has cycle 5.
RUN = [
    _blob("1", 0, 9), _blob("1", 2, 3),
    _blob("2", 1, 0), _blob("2", 0, 0), _blob("2", 0, 1), _blob("2", 1, 5),
]  # fmt: skip


class TestChoose:
    @pytest.mark.parametrize(
        ("asked", "found"),
        [
            ({}, ("2", 0, 1)),
            ({"rank": 1}, ("2", 1, 5)),
            ({"cycle": 0}, ("2", 0, 0)),
            ({"session": "1"}, ("1", 0, 9)),
            ({"session": "1", "rank": 2}, ("1", 2, 3)),
            ({"rank": 2, "any_session": True}, ("1", 2, 3)),
            ({"cycle": 9, "any_session": True}, ("1", 0, 9)),
            ({"cycle": 5, "any_session": True}, ("2", 1, 5)),
            ({"any_session": True}, ("2", 0, 1)),
        ],
    )
    def test_what_is_not_named_is_the_newest_session_the_lowest_rank_the_last_cycle(
        self, asked: dict[str, Any], found: tuple[str, int, int]
    ) -> None:
        for order in (RUN, RUN[::-1]):
            ref = choose(order, "run", **asked).ref
            assert (ref.session, ref.rank, ref.cycle) == found

    @pytest.mark.parametrize(
        ("asked", "sentence"),
        [
            ({"session": "3"}, "Run 'run' has no session '3'; pick another in the list."),
            ({"rank": 2}, "Run 'run' has no rank 2 in session '2'; pick another in the list."),
            ({"session": "1", "rank": 1}, "Run 'run' has no rank 1 in session '1'; pick another in the list."),
            ({"cycle": 5}, "Run 'run' has no cycle 5; pick another in the list."),
            ({"cycle": 7, "any_session": True}, "Run 'run' has no cycle 7; pick another in the list."),
        ],
    )
    def test_what_is_not_there_is_named(self, asked: dict[str, Any], sentence: str) -> None:
        with pytest.raises(NoSuchProfile) as found:
            choose(RUN, "run", **asked)
        assert str(found.value) == sentence

    def test_a_run_without_profiles_is_named(self) -> None:
        with pytest.raises(NoSuchProfile) as found:
            choose([], "run")
        assert str(found.value) == "Run 'run' holds no profile; check the run's name or reload the data."

    def test_of_a_run_that_is_not_there_the_nearest_is_offered(self) -> None:
        store = ProfileStore(_Source([_blob("1", run="resnet50/fp32"), _blob("1", run="vgg16/fp32")]))
        with pytest.raises(NoSuchProfile) as found:
            store.find("resnet5/fp32")
        assert str(found.value) == "Run 'resnet5/fp32' holds no profile; did you mean resnet50/fp32?"
        with pytest.raises(NoSuchProfile, match="reload the data"):
            store.find("something/else")

    def test_of_a_cycle_that_was_recorded_twice_the_later_counts(self) -> None:
        first, second = _blob("1", data=b"first"), _blob("1", data=b"second")
        assert choose([first, second], "run") is second
        other = _blob("1", 1)
        assert ranks_together([first, second, other], other) == [second, other]


def test_each_run_and_each_rank_has_its_newest() -> None:
    others = [_blob("0", run="run10"), _blob("0", 3, run="run2")]
    assert [one.ref.run for one in newest_of_runs([*others, *RUN])] == ["run", "run2", "run10"]
    assert [(one.ref.rank, one.ref.session, one.ref.cycle) for one in newest_of_ranks(RUN)] == [
        (0, "2", 1), (1, "2", 5), (2, "1", 3),
    ]  # fmt: skip


class TestRanksTogether:
    def test_they_are_of_the_same_session_and_cycle(self) -> None:
        together = ranks_together(RUN, _blob("2", 0, 0))
        assert [(one.ref.session, one.ref.rank, one.ref.cycle) for one in together] == [("2", 0, 0), ("2", 1, 0)]

    def test_one_by_itself_has_none(self) -> None:
        assert ranks_together(RUN, _blob("1", 2, 3)) == []

    def test_of_many_some_are_chosen_evenly_and_the_own_is_among_them(self) -> None:
        many = [_blob("1", rank) for rank in range(64)]
        for own in (0, 1, 63):
            ranks = [one.ref.rank for one in ranks_together(many, many[own])]
            assert len(ranks) == MOST_RANKS
            assert own in ranks
            assert ranks == sorted(ranks)
            assert max(after - before for before, after in itertools.pairwise(ranks)) <= 10


@pytest.fixture
def ranks(training: Callable[..., Any]) -> list[_Blob]:
    """Two ranks of a training, and a third whose profile is damaged."""
    profile = training("fp32").profile(session="s")
    whole = [encode(replace(profile, source=replace(profile.source, rank=rank))) for rank in (0, 1)]
    return [_blob("s", rank, data=data) for rank, data in enumerate([*whole, b"damaged"])]


def _ranks_of(view: ProfileView) -> list[int]:
    return [one.profile.source.rank for one in view.ranks]


def test_views_with_long_names_make_room_for_each_other(ranks: list[_Blob], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile_store, "_MOST_BYTES", 5_000_000)
    profile = decode(ranks[0].data)
    data = encode(replace(profile, strings=[*profile.strings, "x" * 3_000_000]))
    kept = KeptViews()
    first, second = _blob("s", data=data), _blob("t", data=data)
    for blob in (first, second):
        ProfileStore(_Source([blob]), kept).view(blob)
    assert [kept.recorded.known((blob.key, ())) is None for blob in (first, second)] == [True, False]


class TestView:
    def test_other_ranks_are_opened_with_it_and_a_damaged_one_is_left_out(self, ranks: list[_Blob]) -> None:
        store = ProfileStore(_Source(ranks))
        view = store.view(store.find("run", rank=1))
        assert _ranks_of(view) == [0, 1]
        assert view.ranks[1] is view
        assert store.view(ranks[0]) is view.ranks[0]
        with pytest.raises(ProfileError):
            store.view(ranks[2])

    def test_other_ranks_are_cut_at_the_key_node_too(self, ranks: list[_Blob]) -> None:
        view = ProfileStore(_Source(ranks)).view(ranks[0], "conv1/conv2d")
        assert [len(one.profile.iterations) for one in view.ranks] == [4, 4]

    def test_a_rank_that_comes_later_is_seen_and_a_view_is_kept_until_then(self, ranks: list[_Blob]) -> None:
        kept = KeptViews()

        def opened(count: int) -> ProfileView:
            return ProfileStore(_Source(ranks[:count]), kept).view(ranks[0])

        alone = opened(1)
        assert alone.ranks == ()
        assert opened(1) is alone
        assert _ranks_of(opened(2)) == [0, 1]

    def test_the_last_cuts_are_kept_and_no_more(self, ranks: list[_Blob]) -> None:
        kept, stored = KeptViews(), [replace(ranks[0], key=number) for number in range(MOST_RANKS + 3)]
        store = ProfileStore(_Source(ranks[:1]), kept)
        first = store.view(stored[0], "conv1/conv2d")
        assert store.view(stored[0], "conv1/conv2d") is first
        for one in stored[1:]:
            store.view(one, "conv1/conv2d")
        assert store.view(stored[0], "conv1/conv2d") is not first

    def test_a_key_node_that_makes_too_many_iterations_is_refused(self, ranks: list[_Blob]) -> None:
        assert len(ProfileStore(_Source(ranks), None, 4).view(ranks[0], "conv1/conv2d").profile.iterations) == 4
        with pytest.raises(TooManyIterations, match="'conv1/conv2d' runs 3 times, too often for a key node"):
            ProfileStore(_Source(ranks), None, 3).view(ranks[0], "conv1/conv2d")
        with pytest.raises(KeyNodeError, match="there is no op named 'nothing'"):
            ProfileStore(_Source(ranks), None, 3).view(ranks[0], "nothing")

    def test_a_run_is_listed_once_by_one_store(self, ranks: list[_Blob]) -> None:
        source = _Source(ranks)
        store = ProfileStore(source)
        for rank in (0, 1):
            store.view(store.find("run", rank=rank))
        assert source.listed == 1


class TestEventFiles:
    @pytest.fixture
    def profile(self, training: Callable[..., Any]) -> Profile:
        profile: Profile = training("fp32").profile(session="s")
        return profile

    def test_runs_are_named_as_tensorboard_names_them(self, tmp_path: Path, profile: Profile) -> None:
        for run in ("a", "b/c"):
            write_profile(tmp_path / run, profile)
        assert list(runs_below(tmp_path)) == ["a", "b/c"]
        assert list(runs_below(tmp_path / "b" / "c")) == ["c"]
        (file,) = runs_below(tmp_path)["a"]
        assert runs_below(file) == {"a": [file]}

    def test_the_newest_of_each_run_is_listed(self, tmp_path: Path, profile: Profile) -> None:
        for cycle in (0, 1):
            write_profile(tmp_path / "a", replace(profile, source=replace(profile.source, cycle=cycle)))
        store = EventFileStore(runs_below(tmp_path))
        assert [one.ref for one in store.latest()] == [RunRef("a", "s", 0, 1)]
        assert len(store.all()) == 2

    def test_a_damaged_profile_is_named_by_its_file(
        self, tmp_path: Path, profile: Profile, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from tb_dlprof_plugin.store import event_file

        monkeypatch.setattr(event_file, "encode", lambda profile: b"damaged")
        path = write_profile(tmp_path / "a", profile)
        for ask in (lambda: read_profiles(tmp_path), lambda: _view(runs_below(tmp_path))):
            with pytest.raises(ProfileError) as found:
                ask()
            assert str(found.value).startswith(f"{path}: ")


def _view(runs: dict[str, list[Path]]) -> ProfileView:
    store = EventFileStore(runs)
    return store.view(store.find("a"))
