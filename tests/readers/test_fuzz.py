"""Sound traces, broken in any way: the analysis ends in a profile that agrees with itself, or in one error."""

from __future__ import annotations

import functools
import gzip
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.broken_traces import INSERTED, MUTATIONS, PAYLOADS, apply, check, recorded, sound_traces

NAMES = sorted(recorded())


@functools.cache
def sound() -> dict[str, bytes]:
    return sound_traces(20)


def _mutation(kind: str) -> st.SearchStrategy[tuple[str, float, int, bytes]]:
    payloads = st.sampled_from(PAYLOADS.get(kind, INSERTED)) | st.binary(max_size=8)
    return st.tuples(st.just(kind), st.floats(0, 1), st.integers(1, 2000), payloads)


_MUTATIONS = st.lists(st.sampled_from(list(MUTATIONS)).flatmap(_mutation), min_size=1, max_size=6)


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(name=st.sampled_from(NAMES), mutations=_MUTATIONS, packed=st.sampled_from([None, None, None, 0.3, 0.9]))
def test_a_broken_trace_gives_a_profile_or_one_error(tmp_path_factory, name, mutations, packed) -> None:
    text = apply(sound()[name], mutations)
    if packed is not None:
        text = gzip.compress(text, 1)
        text = apply(text, [("flip", packed, 3, b"")])
    path = tmp_path_factory.getbasetemp() / "broken.json"
    path.write_bytes(text)
    begin = time.process_time()
    check(path)
    assert time.process_time() - begin < 2 + len(text) / 2e5


def test_most_of_what_is_broken_is_sound_before(tmp_path) -> None:
    path = tmp_path / "sound.json"
    read = 0
    for text in sound().values():
        path.write_bytes(text)
        read += not isinstance(check(path), str)
    assert read > len(sound()) * 0.8
