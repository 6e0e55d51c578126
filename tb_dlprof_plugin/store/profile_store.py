"""`ProfileStore`: finds a run's profile and opens it, whether TensorBoard's data provider or event files hold it."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.model.run_choice import KeyNodeError
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.choice import MOST_RANKS, NoSuchProfile, StoredBlob, choose, newest_of_runs, ranks_together
from tb_dlprof_plugin.store.codec import ProfileError
from tb_dlprof_plugin.store.last_used import LastUsed
from tb_dlprof_plugin.store.reclassify import opened
from tb_dlprof_plugin.store.validation import size_of

_Blob = TypeVar("_Blob", bound=StoredBlob)
_Listed = TypeVar("_Listed", bound=StoredBlob, covariant=True)


_MOST_BYTES = 1_200_000_000
"""Of the views that are kept."""
_ROW_BYTES = 300
"""Of a call or launch with the columns that follow from it."""
_MOST_VIEWS = 100
"""Several people look at several runs, each with `MOST_RANKS` ranks."""


class BlobSource(Protocol[_Listed]):
    """Where profiles are stored."""

    def blobs(self, runs: Collection[str] | None = None) -> Iterable[_Listed]:
        """The profiles of these runs, or of all; none of a run that is not there."""


class TooManyIterations(KeyNodeError):
    """The key node runs too often to separate steps; the message is one sentence."""


class KeptViews:
    """The views that were opened last, for several stores over the same profiles."""

    def __init__(self) -> None:
        self.recorded = _kept_views(_MOST_VIEWS)
        # Those of `MOST_RANKS` ranks with one key node, and a few more. Cutting takes milliseconds; what the pages
        # compute of the result is what is worth keeping.
        self.cut = _kept_views(MOST_RANKS + 2)


def _kept_views(most: int) -> LastUsed[ProfileView]:
    """At most so many, and fewer where they are large."""

    def size(view: ProfileView) -> int:
        profile = view.profile
        rows = len(profile.calls) + len(profile.launches)
        return max(_ROW_BYTES * rows + size_of(profile), _MOST_BYTES // most)

    return LastUsed(_MOST_BYTES, size)


class ProfileStore(Generic[_Blob]):
    """The profiles of a source, as they were listed when a run was first asked for.

    ``most_iterations`` is how many a key node may make, any number by default.
    """

    def __init__(
        self, source: BlobSource[_Blob], kept: KeptViews | None = None, most_iterations: int | None = None
    ) -> None:
        self._source = source
        self._kept = kept or KeptViews()
        self._most_iterations = most_iterations
        self._listed: dict[str, Sequence[_Blob]] = {}

    def of_run(self, run: str) -> Sequence[_Blob]:
        """All profiles of a run; none where there is no such run."""
        if run not in self._listed:
            self._listed[run] = list(self._source.blobs((run,)))
        return self._listed[run]

    def all(self) -> Sequence[_Blob]:
        """All profiles of all runs."""
        return list(self._source.blobs())

    def find(
        self,
        run: str,
        session: str | None = None,
        rank: int | None = None,
        cycle: int | None = None,
        any_session: bool = False,
    ) -> _Blob:
        """The profile that `choose` chooses.

        Raises:
            NoSuchProfile: there is none.
        """
        of_run = self.of_run(run)
        if not of_run:
            from tb_dlprof_plugin.model.near_names import did_you_mean, near_names

            if meant := did_you_mean(near_names(run, {blob.ref.run for blob in self.all()})):
                raise NoSuchProfile(f"Run {run!r} holds no profile; {meant}")
        return choose(of_run, run, session, rank, cycle, any_session)

    def latest(self) -> list[_Blob]:
        """One profile for each run, in natural order of their names: newest session, lowest rank, last cycle."""
        return newest_of_runs(self.all())

    def profile(self, blob: _Blob) -> Profile:
        """The profile itself, which is not kept.

        Raises:
            ProfileError: it is damaged; the caller adds which profile it is.
        """
        return read_profile(blob)

    def view(self, blob: _Blob, key_node: str | None = None) -> ProfileView:
        """The profile's view, kept for the next question. Its other ranks are opened when `ProfileView.ranks` is used.

        ``key_node`` cuts the profile and those of its other ranks into iterations at an op's instances. A rank that
        cannot be read, or lacks the key node, is left out of the others' views.

        Raises:
            ProfileError: the profile is damaged.
            KeyNodeError: there is no such key node; `TooManyIterations` where it runs too often.
        """
        others = [one for one in ranks_together(self.of_run(blob.ref.run), blob) if one.ref.rank != blob.ref.rank]

        def open_others() -> Iterator[ProfileView]:
            for other in others:
                with contextlib.suppress(ProfileError, KeyNodeError):
                    yield self.view(other, key_node)

        # A rank that is recorded later makes it another view.
        key = (blob.key, tuple(one.key for one in others))
        if key_node is None:
            return self._kept.recorded.get(key, lambda: ProfileView(self.profile(blob), open_others))
        return self._kept.cut.get(
            (key, key_node), lambda: ProfileView(self._cut(self.view(blob).profile, key_node), open_others)
        )

    def _cut(self, profile: Profile, key_node: str) -> Profile:
        from tb_dlprof_plugin.metrics.key_node import with_key_node

        cut = with_key_node(profile, key_node)
        if self._most_iterations is not None and len(cut.iterations) > self._most_iterations:
            raise TooManyIterations(
                f"{key_node!r} runs {len(cut.iterations) - 1:,} times, too often for a key node; "
                "choose an op that runs once in each step"
            )
        return cut


def read_profile(blob: StoredBlob) -> Profile:
    """A stored profile with what today's rules say of its kernels and ops.

    Raises:
        ProfileError: it is damaged; the caller adds which profile it is.
    """
    return opened(blob.read())
