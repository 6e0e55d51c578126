"""What tables of many runs show of one, computed once on this machine, so that the next table opens no profile.

It is kept by the profile's bytes and by the code that computed it: another version, which may compute better, computes
it again. Nothing of it is in the run's own file, which others may have written.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Sequence

import msgspec

from tb_dlprof_plugin.comparison.run_table import NamedRun
from tb_dlprof_plugin.metrics.run_figures import RunFigures
from tb_dlprof_plugin.pages.recorded_run import RecordedRun, RunAdvice, recorded_run
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.code_version import code_version
from tb_dlprof_plugin.store.reclassify import opened
from tb_dlprof_plugin.store.result_cache import keep_results, results_of
from tb_dlprof_plugin.store.run_ref import RunRef


class _Kept(msgspec.Struct):
    figures: RunFigures
    advice: list[RunAdvice]


_KEPT = msgspec.json.Decoder(_Kept)


def kept_runs(profiles: Sequence[tuple[RunRef, bytes]]) -> list[RecordedRun | None]:
    """Of profiles under whatever names their runs have now; None for what is not kept.

    Args:
        profiles: each with its encoded bytes.
    """
    keys = [_key(blob) for _, blob in profiles]
    found = results_of(keys)
    return [_decoded(found.get(key), ref) for key, (ref, _) in zip(keys, profiles, strict=True)]


def computed_run(ref: RunRef, blob: bytes) -> RecordedRun:
    """Of a profile that is opened for it, by itself, without its other ranks; kept from now on.

    Raises:
        ProfileError: the bytes are damaged.
    """
    view = ProfileView(opened(blob))
    computed = recorded_run(view, ref, view.selection())
    keep_results({_key(blob): msgspec.json.encode(_Kept(computed.run.figures, computed.advice))})
    return computed


def _key(blob: bytes) -> bytes:
    return hashlib.blake2b(blob, digest_size=20, key=code_version().encode()).digest()


def _decoded(result: bytes | None, ref: RunRef) -> RecordedRun | None:
    if result is not None:
        with contextlib.suppress(msgspec.DecodeError):
            kept = _KEPT.decode(result)
            return RecordedRun(ref, NamedRun(ref.run, kept.figures), kept.advice)
    return None
