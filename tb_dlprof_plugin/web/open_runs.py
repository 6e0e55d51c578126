"""What a query names, opened for the routes: a profile and a range of it, two of them, or all runs."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any

import numpy as np

from tb_dlprof_plugin.fleet.answers.job_of import job_of
from tb_dlprof_plugin.fleet.job import Job
from tb_dlprof_plugin.fleet.stored_facts import JobFacts, facts_of_job
from tb_dlprof_plugin.model.run_choice import KeyNodeError
from tb_dlprof_plugin.pages.compare_metrics import CompareInput
from tb_dlprof_plugin.profile_view import ProfileView, Selection
from tb_dlprof_plugin.store.choice import NoSuchProfile, StoredBlob, of_common_cycle
from tb_dlprof_plugin.store.codec import ProfileError
from tb_dlprof_plugin.store.facts_ahead import facts_ahead
from tb_dlprof_plugin.store.last_used import LastUsed
from tb_dlprof_plugin.store.profile_store import KeptViews, ProfileStore, TooManyIterations
from tb_dlprof_plugin.store.run_ref import RunRef
from tb_dlprof_plugin.web.errors import RequestError
from tb_dlprof_plugin.web.queries import AnyQuery, CompareQuery, ProfileQuery, RangeQuery
from tb_dlprof_plugin.web.recorded_runs import RecordedRuns
from tb_dlprof_plugin.web.run_source import RunSource

_MOST_ITERATIONS = 2_000
"""Of a key node: nothing that runs so often is a step."""
_KEPT_FAILURES = 10_000
_KEPT_FILE_BYTES = 64_000_000
"""Of HTML files, which a browser reads in pieces."""
_KEPT_BYTES = 512_000_000
"""Of the jobs that were looked at last: 56 bytes a call where ranks make the same ones, 200 where none does."""


class KeptBetweenRequests:
    """What is kept between requests."""

    def __init__(self) -> None:
        self.views = KeptViews()
        self.recorded = RecordedRuns()
        self.jobs: LastUsed[JobFacts] = LastUsed(_KEPT_BYTES, lambda job: job.size)
        self.files: LastUsed[bytes] = LastUsed(_KEPT_FILE_BYTES, len)
        self._unreadable: LastUsed[str] = LastUsed(_KEPT_FAILURES)
        self._noted = 0

    @property
    def failures(self) -> int:
        """How often reading a profile failed so far."""
        return self._noted + self.recorded.failures

    def note_unreadable(self, blob: StoredBlob, why: str) -> None:
        """Remembers that a profile could not be read."""
        if self._unreadable.known(blob.key) != why:
            self._unreadable.keep(blob.key, why)
            self._noted += 1

    def why_unreadable(self, key: Hashable) -> str:
        """Why the profile of this key could not be read when it was asked for; else ""."""
        return self._unreadable.known(key) or self.recorded.why_failed(key)


class OpenRuns:
    """The profiles of one request; ``kept`` outlives it."""

    def __init__(self, source: RunSource, logdir: str, kept: KeptBetweenRequests) -> None:
        self.source, self.logdir, self.kept = source, logdir, kept
        self._store: ProfileStore[StoredBlob] = ProfileStore(source, kept.views, _MOST_ITERATIONS)

    def given(self, names: Collection[str], query: AnyQuery) -> dict[str, Any]:
        """What the query names, opened, for the parameters of a page that have these names.

        Raises:
            RequestError: as the other methods do.
        """
        found: dict[str, Any] = {"runs": self}
        if isinstance(query, CompareQuery):
            found["a"], found["b"] = CompareInput(*self.profile(query.a)), CompareInput(*self.profile(query.b))
        elif "recorded" in names:
            read = self.kept.recorded.read(self._store)
            found |= {"recorded": read.recorded, "failed": read.failed, "total": read.total}
        elif "view" in names and isinstance(query, ProfileQuery):
            found["view"], found["ref"], found["selection"] = self.profile(query)
        elif "job" in names and isinstance(query, ProfileQuery):
            found["job"], found["ref"] = self.job(query)
        elif "facts" in names and isinstance(query, ProfileQuery):
            facts, found["ref"] = self.facts(query, getattr(query, "step", None))
            found |= {"facts": facts.facts, "numbers": facts.numbers}
        return {name: found[name] for name in names if name in found}

    def profile(self, query: ProfileQuery) -> tuple[ProfileView, RunRef, Selection]:
        """The profile that a query names, and its range.

        Raises:
            RequestError: there is no such run, session, rank, cycle, key node or range, or the profile is damaged.
        """
        key_node, first, last = (
            (query.key_node, query.first, query.last) if isinstance(query, RangeQuery) else (None, None, None)
        )
        try:
            blob = self._store.find(query.run, query.session, query.rank, query.cycle)
        except NoSuchProfile as error:
            raise RequestError(404, str(error)) from None
        try:
            view = self._store.view(blob, key_node)
            return view, blob.ref, view.selection(first, last)
        except ProfileError as error:
            self.kept.note_unreadable(blob, str(error))
            raise RequestError(422, f"Run {query.run!r} cannot be shown: {error}.") from None
        except KeyNodeError as error:
            status = 400 if isinstance(error, TooManyIterations) else 404
            raise RequestError(status, f"Run {query.run!r}: {error}.") from None
        except ValueError as error:
            raise RequestError(400, f"Run {query.run!r}: {error}.") from None

    def facts(self, query: ProfileQuery, step: int | None = None) -> tuple[JobFacts, RunRef]:
        """What is stored of all ranks recorded with the profile that a query names.

        Of a job of which only some steps' calls are read, ``step`` is one that is.

        Raises:
            RequestError: there is no such run, session, rank or cycle, or no rank can be read.
        """
        try:
            blob = self._store.find(query.run, query.session, query.rank, query.cycle)
        except NoSuchProfile as error:
            raise RequestError(404, str(error)) from None
        together = [one for one in self._store.of_run(query.run) if one.ref.session == blob.ref.session]
        chosen = of_common_cycle(together)
        key = tuple(one.key for one in chosen)
        found = self.kept.jobs.get(key, lambda: facts_of_job(facts_ahead(chosen), len(chosen)))
        if step is not None and found.numbers is not None and step not in found.numbers:
            only = np.array([step])
            found = self.kept.jobs.get((key, step), lambda: facts_of_job(facts_ahead(chosen), len(chosen), only))
        if not found.facts:
            raise RequestError(422, f"Run {query.run!r} cannot be shown: {found.unreadable[0]}")
        return found, blob.ref

    def job(self, query: ProfileQuery) -> tuple[Job, RunRef]:
        """The answers about the job of a profile, whose facts are not held any longer.

        Raises:
            RequestError: as `facts` does.
        """
        found, ref = self.facts(query)
        return job_of(found.facts, numbers=found.numbers, unreadable=found.unreadable), ref
