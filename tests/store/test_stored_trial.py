"""A trial is stored with the profile of its baseline, and what no trial writes is none."""

from __future__ import annotations

import msgspec
import pytest
from support.stored_profiles import trial_result

from tb_dlprof_plugin.model.trial_result import TrialResult, decode_trial, encode_trial


def test_a_trial_is_read_as_it_was_written() -> None:
    assert decode_trial(encode_trial(trial_result())) == trial_result()


def test_unknown_fields_of_a_newer_version_are_passed_over() -> None:
    newer = {**msgspec.to_builtins(trial_result()), "of_the_future": 1}
    assert decode_trial(msgspec.json.encode(newer)) == trial_result()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b"[]",
        b'{"baseline_ms": "fast"}',
        b'{"baseline_ms": -1}',
        b'{"baseline_ms": 1e999}',
        b'{"rows": [{"remedy": "tf32", "after_ms": 0}]}',
        b'{"rows": [{"remedy": "tf32", "gain_percent": 100.5}]}',
        b'{"best": {"low_percent": 1e300}}',
        b'{"best": {"memory_bytes": -1}}',
        b'{"rows": [{"remedy": "tf32", "memory_bytes": 99999999999999999999999}]}',
        b'{"seconds": -1}',
        b" " * 2_000_000,
    ],
)
def test_what_no_trial_writes_is_none(data: bytes) -> None:
    assert decode_trial(data) is None


def test_an_empty_trial_is_one() -> None:
    assert decode_trial(b"{}") == TrialResult()
