"""Stored profiles are untrusted input: a fault in one is a `ProfileError` where it is read, and costs little."""

from __future__ import annotations

import dataclasses
import gzip
import random
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from support.hostile_traces import faults_of
from support.messages import pb
from support.stored_profiles import columns, full_profile, mutated, packed

from tb_dlprof_plugin.model.column import Between, Flag, RowsOf
from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.model.run_facts import GarbageCollection
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.codec import ProfileError, decode, encode
from tb_dlprof_plugin.store.reclassify import reclassified
from tb_dlprof_plugin.store.validation import check_profile, columns_of, tables_of

_OWN_LENGTH = {
    "iterations.gpu_ids", "iterations.unrecorded_categories", "input_shapes.inputs", "input_shapes.dimensions",
    "input_dtypes.inputs",
}  # fmt: skip
_ANY_NUMBER = {"input_shapes.sizes"}
"""Columns of the message that may hold whatever their type does."""
_TABLES = dict(tables_of(Profile))
_COLUMNS = [(path, name) for path, table in _TABLES.items() for name in columns_of(table)]


@pytest.fixture(scope="module")
def full(gpu_view: ProfileView) -> Profile:
    return full_profile(gpu_view)


def _message(profile: Profile) -> Any:
    return pb.Profile.FromString(gzip.decompress(encode(profile)))


def test_every_table_of_a_profile_is_known_and_has_rows_in_the_tests(full: Profile) -> None:
    assert set(_TABLES) == {
        "iterations", "ops", "calls", "kernels", "launches", "launch_configs", "memory", "call_places", "light_window",
        "light_window.calls", "light_window.launches", "communications", "kernel_counters", "tensor_activity",
        "compiled_kernels", "loader_batches",
    }  # fmt: skip
    assert [path for path, message, kind in columns(_message(full)) if not len(getattr(message, kind.name))] == []
    check_profile(full)


def test_a_column_must_declare_what_its_numbers_are() -> None:
    @dataclasses.dataclass
    class Table:
        row: np.ndarray

    Table.__annotations__["row"] = np.ndarray
    with pytest.raises(TypeError, match="does not declare"):
        columns_of(Table)


def _outside(profile: Profile, path: str, name: str) -> list[int]:
    meaning = columns_of(_TABLES[path])[name]
    if isinstance(meaning, Between):
        return [meaning.low - 1, meaning.high + 1]
    if isinstance(meaning, RowsOf):
        table: Any = profile
        for part in meaning.table.split("."):
            table = getattr(table, part)
        return [meaning.lowest - 1, len(table)]
    return []


def _with(profile: Any, path: str, name: str, column: Any) -> Any:
    first, _, rest = path.partition(".")
    inner = getattr(profile, first)
    changed = _with(inner, rest, name, column) if rest else dataclasses.replace(inner, **{name: column})
    return dataclasses.replace(profile, **{first: changed})


@pytest.mark.parametrize(("path", "name"), _COLUMNS)
def test_a_number_outside_of_what_its_column_declares_is_refused(full: Profile, path: str, name: str) -> None:
    table: Any = full
    for part in path.split("."):
        table = getattr(table, part)
    outside = _outside(full, path, name)
    assert outside or isinstance(columns_of(_TABLES[path])[name], Flag)
    for number in outside:
        column = getattr(table, name).copy()
        column.flat[-1] = number
        with pytest.raises(ValueError, match=rf"{path}\.{name}"):
            check_profile(_with(full, path, name, column))


def test_the_largest_number_that_a_stored_column_holds_is_refused_in_each(full: Profile) -> None:
    sound = _message(full)
    for path, _, kind in columns(sound):
        if kind.cpp_type == kind.CPPTYPE_BOOL or path in _ANY_NUMBER:
            continue
        for number in (2**63 - 1, -(2**63)):
            message = pb.Profile.FromString(sound.SerializeToString())
            table = next(table for other, table, _ in columns(message) if other == path)
            getattr(table, kind.name)[-1] = number
            with pytest.raises(ProfileError, match="damaged"):
                pytest.fail(f"{path} takes {decode(packed(message)) and number}")


def test_a_column_that_is_shorter_or_longer_than_the_others_is_refused(full: Profile) -> None:
    sound = _message(full)
    for path, _, kind in columns(sound):
        if path in _OWN_LENGTH:
            continue
        for change in (lambda column: column.pop(), lambda column: column.append(0)):
            message = pb.Profile.FromString(sound.SerializeToString())
            table = next(table for other, table, _ in columns(message) if other == path)
            change(getattr(table, kind.name))
            with pytest.raises(ProfileError, match="damaged"):
                pytest.fail(f"{path} has another length: {decode(packed(message)) is not None}")


@pytest.mark.parametrize(
    ("path", "name"),
    [("launches", "start_ns"), ("memory", "time_ns"), ("calls", "start_ns"), ("iterations", "host_start_ns"),
     ("light_window.calls", "start_ns"), ("light_window", "boundary_ns")],
)  # fmt: skip
def test_times_that_do_not_rise_are_refused(full: Profile, path: str, name: str) -> None:
    table: Any = full
    for part in path.split("."):
        table = getattr(table, part)
    changed = _with(full, path, name, getattr(table, name)[::-1].copy())
    with pytest.raises(ProfileError, match=r"does not rise|ends before"):
        decode(encode(changed))


def test_calls_without_a_caller_or_beyond_it_are_refused(full: Profile) -> None:
    calls = full.calls
    deep, long = calls.depth.copy(), calls.duration_ns.copy()
    deep[np.flatnonzero(deep)[0]] += 1
    long[np.flatnonzero(calls.depth)[0]] += 10**9
    for changed in (dataclasses.replace(calls, depth=deep), dataclasses.replace(calls, duration_ns=long)):
        with pytest.raises(ProfileError, match="caller"):
            decode(encode(dataclasses.replace(full, calls=changed)))


def test_a_fact_that_cannot_be_is_as_if_it_was_not_recorded(full: Profile) -> None:
    facts = full.facts
    wrong = msgspec.structs.replace(
        facts,
        parameter_count=2**62,
        unprofiled_before_ns=[2**62, 7, 2**47],
        grad_scaler_scale=float("nan"),
        garbage_collections=[*facts.garbage_collections, GarbageCollection(1_700_000_000_000_000_000, 2**60, 2)],
    )
    found = decode(encode(dataclasses.replace(full, facts=wrong))).facts
    assert found == msgspec.structs.replace(
        facts, parameter_count=None, unprofiled_before_ns=[7], grad_scaler_scale=None,
    )  # fmt: skip
    assert found.garbage_collections


def test_a_profile_that_shrinks_more_than_any_recorded_one_can_be_read_after_it_was_written(training: Any) -> None:
    profile = training(steps=400).profile()
    repeated = dataclasses.replace(profile, strings=[*profile.strings, "x" * 30_000_000])
    assert decode(encode(repeated)).strings[-1] == "x" * 30_000_000


def test_a_blob_changed_anywhere_is_read_or_refused_in_one_sentence(full: Profile) -> None:
    data, source = gzip.decompress(encode(full)), random.Random(22)
    sentences = []
    for _ in range(400):
        changed = bytearray(data)
        for _ in range(source.choice((1, 1, 2, 5))):
            at = source.randrange(len(changed))
            changed[at : at + source.choice((0, 1, 1, 1, 4))] = source.randbytes(source.choice((0, 1, 1, 2)))
        try:
            decode(gzip.compress(bytes(changed), 1))
        except ProfileError as error:
            sentences.append(str(error))
    assert len(sentences) > 100
    assert not any("\n" in sentence for sentence in sentences)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 64))])
def test_what_is_let_in_can_be_shown(full: Profile, cpu_view: ProfileView, tmp_path: Path, seed: int) -> None:
    source = random.Random(seed)
    sound = [_message(full), _message(full), _message(cpu_view.profile)]
    let_in, count = 0, 12 if seed > 1 else 4
    for number in range(count):
        try:
            profile = decode(packed(mutated(source.choice(sound), source)))
        except ProfileError:
            continue
        let_in += 1
        assert list(faults_of(ProfileView(reclassified(profile)), tmp_path)) == [], f"seed {seed}, profile {number}"
    assert let_in > count // 4
