"""The profiles of a TensorBoard: listed through its data provider, decoded on demand, the last few cached."""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tensorboard.data.provider import RunTagFilter

from tb_dlprof_plugin.metrics.key_node import KeyNodeError, with_key_node
from tb_dlprof_plugin.model.natural_order import natural_order
from tb_dlprof_plugin.pages.common import RunRef
from tb_dlprof_plugin.pages.run_index import RunEntry, RunIndex
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.codec import ProfileError, decode
from tb_dlprof_plugin.store.header import parse_header
from tb_dlprof_plugin.store.ranks import ranks_together
from tb_dlprof_plugin.store.reclassify import renewed
from tb_dlprof_plugin.store.tags import PLUGIN_NAME, Tag
from tb_dlprof_plugin.version import __version__
from tb_dlprof_plugin.web.errors import RequestError

_KEPT_FRAMES = 20
"""Two runs of `MOST_RANKS` ranks side by side, and a few more."""
_KEPT_CUTS = 10
"""Those of `MOST_RANKS` ranks with one key node, and a few more. Cutting takes milliseconds; the cache is for what the
pages compute from the result."""
_MOST_ITERATIONS = 2_000
"""Of a key node: nothing that runs so often is a step."""
_MAX_CYCLES = 10_000
INDEX_ENTRIES = 3_000
"""In one response, if no name is very long; the page requests the rest."""


@dataclass(frozen=True, slots=True)
class Latest:
    """The profile that represents a run in a table of many: its newest session, lowest rank and last cycle."""

    ref: RunRef
    datum: Any

    @property
    def key(self) -> tuple[str, float]:
        """Identity of this profile: one that replaces it has another."""
        return (self.datum.values[0].blob_key, self.datum.wall_time)


class ProfileStore:
    """Profiles by `RunRef`. Safe to call from several threads."""

    def __init__(self, data_provider: Any, logdir: str) -> None:
        self._provider = data_provider
        self._logdir = logdir
        self._frames: OrderedDict[tuple[str, float], ProfileView] = OrderedDict()
        self._cuts: OrderedDict[tuple[str, float, str], ProfileView] = OrderedDict()
        self._lock = threading.Lock()

    def index(self, context: Any, experiment: str, offset: int = 0) -> RunIndex:
        """All runs that have profiles, or `INDEX_ENTRIES` of them; only summary metadata is read."""
        series = self._provider.list_blob_sequences(context, experiment_id=experiment, plugin_name=PLUGIN_NAME)
        places = {run: natural_order(run) for run in series}
        found = sorted(
            ((run, tag, text) for run, tags in series.items() for text in tags if (tag := Tag.parse(text)) is not None),
            key=lambda one: (places[one[0]], one[1].session, one[1].rank),
        )
        shown = found[offset : offset + INDEX_ENTRIES]
        data = self._provider.read_blob_sequences(
            context,
            experiment_id=experiment,
            plugin_name=PLUGIN_NAME,
            downsample=_MAX_CYCLES,
            run_tag_filter=RunTagFilter(runs=sorted({run for run, _, _ in shown})),
        )
        entries = []
        for run, tag, text in shown:
            cycles = sorted({datum.step for datum in data.get(run, {}).get(text, ())})
            entries.append(_entry(run, tag, cycles, parse_header(series[run][text].plugin_content)))
        return RunIndex(plugin_version=__version__, logdir=self._logdir, runs=entries, offset=offset, total=len(found))

    def latest(self, context: Any, experiment: str) -> list[Latest]:
        """One profile of every run that has any, in natural order; no profile is read."""
        data = self._provider.read_blob_sequences(
            context, experiment_id=experiment, plugin_name=PLUGIN_NAME, downsample=_MAX_CYCLES
        )
        result = []
        for run in sorted(data, key=natural_order):
            found = [
                ((tag.session, -tag.rank, datum.step), tag, datum)
                for text, values in data[run].items()
                if (tag := Tag.parse(text))
                for datum in values
                if datum.values
            ]
            if found:
                _, tag, datum = max(found, key=lambda one: one[0])
                result.append(Latest(RunRef(run, tag.session, tag.rank, int(datum.step)), datum))
        return result

    def decode(self, context: Any, latest: Latest) -> ProfileView:
        """A profile for one-time use: it is not cached.

        Raises:
            RequestError: it is damaged.
        """
        with self._lock:
            if latest.key in self._frames:
                return self._frames[latest.key]
        return self._decoded(context, latest.ref.run, latest.datum)

    def find(
        self,
        context: Any,
        experiment: str,
        run: str,
        session: str | None = None,
        rank: int | None = None,
        cycle: int | None = None,
        with_ranks: bool = False,
        key_node: str | None = None,
    ) -> tuple[ProfileView, RunRef]:
        """A profile; by default of the newest session, the lowest rank, the last cycle.

        ``with_ranks`` also opens those of other ranks, as `ProfileView.ranks`. ``key_node`` cuts it, and
        them, into iterations at an op's instances.

        Raises:
            RequestError: there is no such run, session, rank, cycle or key node, or its profile is damaged.
        """
        data = self._provider.read_blob_sequences(
            context,
            experiment_id=experiment,
            plugin_name=PLUGIN_NAME,
            downsample=_MAX_CYCLES,
            run_tag_filter=RunTagFilter(runs=[run]),
        )
        series = {tag: values for text, values in data.get(run, {}).items() if (tag := Tag.parse(text)) and values}
        if not series:
            raise RequestError(404, f"Run {run!r} holds no profile; check the run's name or reload the data.")
        chosen = session if session is not None else max(tag.session for tag in series)
        tags = [tag for tag in series if tag.session == chosen and rank in (None, tag.rank)]
        if not tags:
            what = f"session {session!r}" if rank is None else f"rank {rank} in session {chosen!r}"
            raise RequestError(404, f"Run {run!r} has no {what}; pick another in the list.")
        tag = min(tags, key=lambda t: t.rank)
        found = [d for d in series[tag] if cycle in (None, d.step) and d.values]
        if not found:
            raise RequestError(404, f"Run {run!r} has no cycle {cycle}; pick another in the list.")
        datum = max(found, key=lambda d: d.step)
        view = self._frame(context, run, datum, key_node)
        if with_ranks:
            same = {
                other.rank: d for other, values in series.items() if other.session == chosen for d in values
                if d.step == datum.step and d.values
            }  # fmt: skip
            view.ranks = tuple(self._ranks(context, run, same, tag.rank, key_node))
        return view, RunRef(run, chosen, tag.rank, int(datum.step))

    def _ranks(
        self, context: Any, run: str, data: dict[int, Any], own: int, key_node: str | None
    ) -> Iterator[ProfileView]:
        for rank in ranks_together(data, own):
            # A rank that cannot be read, or lacks the key node, is reported on its own page.
            with contextlib.suppress(RequestError):
                yield self._frame(context, run, data[rank], key_node)

    def _frame(self, context: Any, run: str, datum: Any, key_node: str | None) -> ProfileView:
        key = (datum.values[0].blob_key, datum.wall_time)
        return (
            self._read(context, run, datum, key) if key_node is None else self._cut(context, run, datum, key, key_node)
        )

    def _cut(self, context: Any, run: str, datum: Any, key: tuple[str, float], key_node: str) -> ProfileView:
        with self._lock:
            if (*key, key_node) in self._cuts:
                self._cuts.move_to_end((*key, key_node))
                return self._cuts[(*key, key_node)]
        try:
            cut = with_key_node(self._read(context, run, datum, key).profile, key_node)
        except KeyNodeError as error:
            raise RequestError(404, f"Run {run!r}: {error}.") from None
        if len(cut.iterations) > _MOST_ITERATIONS:
            raise RequestError(
                400,
                f"Run {run!r}: {key_node!r} runs {len(cut.iterations) - 1:,} times, too often for a key node; "
                "choose an op that runs once in each step.",
            )
        view = ProfileView(cut)
        with self._lock:
            self._cuts[(*key, key_node)] = view
            while len(self._cuts) > _KEPT_CUTS:
                self._cuts.popitem(last=False)
        return view

    def _read(self, context: Any, run: str, datum: Any, key: tuple[str, float]) -> ProfileView:
        with self._lock:
            if key in self._frames:
                self._frames.move_to_end(key)
                return self._frames[key]
        view = self._decoded(context, run, datum)
        with self._lock:
            self._frames[key] = view
            while len(self._frames) > _KEPT_FRAMES:
                self._frames.popitem(last=False)
        return view

    def _decoded(self, context: Any, run: str, datum: Any) -> ProfileView:
        blob = self._provider.read_blob(context, blob_key=datum.values[0].blob_key)
        try:
            return ProfileView(renewed(decode(blob)))
        except ProfileError as error:
            raise RequestError(422, f"Run {run!r} cannot be shown: {error}.") from None


def _entry(run: str, tag: Tag, cycles: list[int], header: Any | None) -> RunEntry:
    return RunEntry(
        run=run,
        session=tag.session,
        rank=tag.rank,
        cycles=cycles,
        model=(header.model or None) if header else None,
        precision=(header.precision or None) if header else None,
        device=(header.device or None) if header else None,
        created_unix_ns=(header.created_unix_ns or None) if header else None,
        iterations=(header.iterations or None) if header else None,
        recorded_iteration_ns=(header.average_iteration_ns or None) if header else None,
    )
