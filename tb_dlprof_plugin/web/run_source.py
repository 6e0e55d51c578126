"""Where the routes find stored profiles: TensorBoard's data provider, or what lists its runs as that does."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from tb_dlprof_plugin.store.choice import StoredBlob
from tb_dlprof_plugin.store.codec import ProfileError
from tb_dlprof_plugin.store.profile_store import BlobSource
from tb_dlprof_plugin.store.run_ref import RunRef
from tb_dlprof_plugin.store.tags import PLUGIN_NAME, Tag
from tb_dlprof_plugin.web.loader_names import is_fast, unreadable_name

_MAX_CYCLES = 10_000
_LOCAL = ("GrpcDataProvider", "MultiplexerDataProvider")


def is_local(provider: Any) -> bool:
    """Whether a data provider is one of TensorBoard's own loaders, which answer everybody alike."""
    return type(provider).__name__ in _LOCAL


@dataclass(frozen=True, slots=True)
class Series:
    """The profiles of one run, session and rank; ``header`` is what the metadata of one holds.

    ``unreadable`` says why none of them can be read, where that is known before; else it is "".
    """

    run: str
    tag: Tag
    header: bytes
    unreadable: str = ""


class RunSource(BlobSource[StoredBlob], Protocol):
    """Stored profiles that can be listed without finding out which cycles there are."""

    def series(self) -> Iterable[Series]:
        """What is stored; only metadata is read."""


@dataclass(frozen=True, slots=True)
class _ProviderBlob(StoredBlob):
    provider: Any
    context: Any
    blob_key: str
    facts_key: str | None

    def read(self) -> bytes:
        return self._read(self.blob_key)

    def read_facts(self) -> bytes | None:
        return None if self.facts_key is None else self._read(self.facts_key)

    def _read(self, blob_key: str) -> bytes:
        try:
            data: bytes = self.provider.read_blob(self.context, blob_key=blob_key)
        except Exception as error:
            # Each loader has errors of its own. Whatever it is, it is this run's, and the others are read on.
            known = unreadable_name(self.ref.run) if is_fast(self.provider) else ""
            raise ProfileError(known or f"TensorBoard's loader does not hand it out ({error}); press Refresh") from None
        return data


@dataclass(frozen=True, slots=True)
class DataProviderSource:
    """The profiles that TensorBoard has loaded of an experiment, asked for each time."""

    provider: Any
    context: Any
    experiment: str

    def series(self) -> list[Series]:
        """What is stored; only summary metadata is read."""
        fast = is_fast(self.provider)
        found = self.provider.list_blob_sequences(self.context, experiment_id=self.experiment, plugin_name=PLUGIN_NAME)
        unreadable = {run: unreadable_name(run) if fast else "" for run in found}
        return [
            Series(run, tag, info.plugin_content, unreadable[run])
            for run, tags in found.items()
            for text, info in tags.items()
            if (tag := Tag.parse(text)) is not None
        ]

    def blobs(self, runs: Collection[str] | None = None) -> list[StoredBlob]:
        """The profiles of these runs, or of all; none is read."""
        from tensorboard.data.provider import RunTagFilter

        wanted = {} if runs is None else {"run_tag_filter": RunTagFilter(runs=sorted(runs))}
        data = self.provider.read_blob_sequences(
            self.context, experiment_id=self.experiment, plugin_name=PLUGIN_NAME, downsample=_MAX_CYCLES, **wanted
        )
        return [
            self._blob(run, tag, datum, facts.get((datum.step, datum.wall_time)))
            for run, tags in data.items()
            for text, values in tags.items()
            if (tag := Tag.parse(text)) is not None
            for facts in (_keys(tags.get(tag.of_facts, ())),)
            for datum in values
            if datum.values
        ]

    def _blob(self, run: str, tag: Tag, datum: Any, facts_key: str | None) -> StoredBlob:
        ref, key = RunRef(run, tag.session, tag.rank, int(datum.step)), datum.values[0].blob_key
        return _ProviderBlob(ref, (key, datum.wall_time), self.provider, self.context, key, facts_key)


def _keys(values: Iterable[Any]) -> dict[tuple[int, float], str]:
    """Keys of blobs by the step and the time of their event: a profile that is recorded again has other ones."""
    return {(datum.step, datum.wall_time): datum.values[0].blob_key for datum in values if datum.values}
