"""Stored messages are those of protobuf, and keep the numbers that their fields have had."""

from __future__ import annotations

import dataclasses
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.messages import pb
from support.stored_profiles import full_profile

from tb_dlprof_plugin.model.column import COUNT_OR_NONE, PLUS_ONE, FieldNumber, InOldFiles
from tb_dlprof_plugin.model.profile import Ints, Kernels, Profile
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.allowance import Allowance
from tb_dlprof_plugin.store.codec import encode
from tb_dlprof_plugin.store.header import Header
from tb_dlprof_plugin.store.layout import fields_of
from tb_dlprof_plugin.store.message import message_of, read_message, struct_of
from tb_dlprof_plugin.store.schema_1 import ProfileOfSchema1
from tb_dlprof_plugin.store.validation import check_lengths
from tb_dlprof_plugin.store.wire import WireColumn, packed_numbers

STORED = Path(__file__).with_name("stored_fields.txt")
"""Fields of stored files: message, number, name, type and packing. A field that is stored from now on may be added."""


def _fields(kind: type, done: set[type]) -> Iterator[str]:
    if kind in done:
        return
    done.add(kind)
    for field in fields_of(kind):
        packing = [name for name in ("deltas", "plus_one", "signed", "runs") if getattr(field.packing, name)]
        many = ["many"] if field.many else []
        yield " ".join([kind.__name__, str(field.number), field.name, field.kind.__name__, *many, *packing])
        if field.is_message:
            yield from _fields(field.kind, done)


def test_stored_fields_keep_their_numbers() -> None:
    done: set[type] = set()
    declared = {line for kind in (Profile, Header, ProfileOfSchema1) for line in _fields(kind, done)}
    assert set(STORED.read_text().splitlines()) - declared == set()


def test_what_is_stored_is_what_protobuf_writes(gpu_view: ProfileView) -> None:
    data = gzip.decompress(encode(full_profile(gpu_view)))
    assert pb.Profile.FromString(data).SerializeToString() == data


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=40), st.booleans())
def test_any_numbers_of_a_column_come_back(numbers: list[int], zigzag: bool) -> None:
    column = WireColumn()
    assert column.add(memoryview(packed_numbers(np.array(numbers, dtype=np.int64), zigzag))) == len(numbers)
    assert column.decode(zigzag).tolist() == numbers


@pytest.mark.parametrize("count", [3, 300_000])
def test_numbers_in_any_amount_are_those_of_protobuf(count: int) -> None:
    sizes = np.random.default_rng(1).integers(0, 2**40, count)
    column = WireColumn()
    message = pb.ShapeColumns(sizes=sizes.tolist(), dimensions=(-sizes).tolist()).SerializeToString()
    assert message.endswith(packed_numbers(sizes, False))
    assert packed_numbers(-sizes, True) in message
    column.add(memoryview(packed_numbers(sizes, False)))
    assert (column.decode(False) == sizes).all()


@dataclasses.dataclass(frozen=True, slots=True)
class _NewKernels(Kernels):
    registers: Annotated[Ints, COUNT_OR_NONE, PLUS_ONE, InOldFiles(-1)]


@dataclasses.dataclass(frozen=True, slots=True)
class _NewProfile(Profile):
    kernels: Annotated[_NewKernels, FieldNumber(10)]


def test_a_column_is_new_by_its_declaration_alone(gpu_view: ProfileView) -> None:
    old = gpu_view.profile
    columns = {field.name: getattr(old.kernels, field.name) for field in dataclasses.fields(old.kernels)}
    registers = np.arange(len(old.kernels)) - 1
    parts = {field.name: getattr(old, field.name) for field in dataclasses.fields(old)}
    new = _NewProfile(**parts | {"kernels": _NewKernels(**columns, registers=registers)})

    def read(profile: Profile) -> list[int]:
        data = message_of(profile)
        allowance = Allowance(len(data))
        values = read_message(data, _NewProfile, allowance)
        check_lengths(_NewProfile, values, allowance)
        return struct_of(_NewProfile, values, allowance).kernels.registers.tolist()

    assert read(new) == registers.tolist()
    assert read(old) == [-1] * len(old.kernels)
