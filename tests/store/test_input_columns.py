"""Inputs of ops in stored profiles: as they were, in the schema of today and in the first."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.messages import pb_1

from tb_dlprof_plugin.model.dtypes import InputDtypes, dtype_named
from tb_dlprof_plugin.model.input_columns import (
    DtypeColumns,
    ShapeColumns,
    dtype_columns,
    shape_columns,
    table_of_dtypes,
    table_of_shapes,
)
from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.model.shapes import InputShapes, TensorList, inputs_text
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.codec import ProfileError, decode, encode
from tb_dlprof_plugin.store.logdir import read_profiles

RECORDED = Path(__file__).parents[2] / "demo" / "recorded"

_shape = st.lists(st.integers(-1, 2**62), max_size=4).map(tuple)
_input = st.one_of(_shape, st.lists(_shape, min_size=1, max_size=3).map(TensorList), st.none())
_table = st.lists(st.lists(_input, max_size=4).map(tuple), max_size=4).map(lambda rows: [(), *rows])


@given(_table)
def test_any_shapes_come_back(table: list[InputShapes]) -> None:
    found = table_of_shapes(shape_columns(table))

    assert found == table
    assert [[type(one) for one in row] for row in found] == [[type(one) for one in row] for row in table]


@given(st.lists(st.lists(st.sampled_from(["float", "c10::Half", "", "Scalar", "c10::New"]), max_size=4), max_size=4))
def test_any_data_types_come_back(names: list[list[str]]) -> None:
    table: list[InputDtypes] = [(), *(tuple(map(dtype_named, row)) for row in names)]

    assert table_of_dtypes(dtype_columns(table)) == table


@pytest.mark.parametrize(
    "columns",
    [
        ([2], [0], [1], [5]),
        ([1], [1], [1], [5]),
        ([1], [0], [2], [5]),
        ([1], [0], [-3, 1], [5]),
        ([1], [0], [1], [5, 6]),
        ([], [0], [0], []),
        # Sizes that would be taken twice.
        ([1], [0], [-4, 2, -2, 2], [5, 6]),
    ],
)
def test_columns_of_shapes_that_do_not_fit_together_are_refused(columns: tuple[list[int], ...]) -> None:
    with pytest.raises((ValueError, IndexError)):
        table_of_shapes(ShapeColumns(*(np.array(column, dtype=np.int64) for column in columns)))


@pytest.mark.parametrize("inputs", [[2], []])
def test_columns_of_data_types_that_do_not_fit_together_are_refused(inputs: list[int]) -> None:
    with pytest.raises(ValueError, match="do not fit together"):
        table_of_dtypes(DtypeColumns(np.array(inputs, dtype=np.int64), ["float"], np.array([0])))


def test_ops_with_inputs_that_are_not_stored_are_damage(gpu_view: ProfileView) -> None:
    ops = gpu_view.profile.ops
    damaged = replace(gpu_view.profile, ops=replace(ops, shapes=np.full(len(ops), 10_000)))

    with pytest.raises(ProfileError, match="damaged"):
        decode(encode(damaged))


def _in_schema_1(profile: Profile) -> bytes:
    """The blob as the first schema has it: inputs as JSON texts among the strings."""
    message = pb_1.ProfileOfSchema1.FromString(gzip.decompress(encode(profile)))
    message.schema_version = 1
    for table in ("input_shapes", "input_dtypes"):
        message.ClearField(table)
    texts = {"": 0}
    for row_of, texts_of in (
        ((profile.ops.shapes, message.ops.shapes), [inputs_text(row) or "[]" for row in profile.input_shapes]),
        (
            (profile.ops.dtypes, message.ops.dtypes),
            [json.dumps([dtype.name for dtype in row]) for row in profile.input_dtypes],
        ),
    ):
        column, field = row_of
        for row in column.tolist():
            text = texts_of[row] if row else ""
            if text not in texts:
                texts[text] = len(message.strings)
                message.strings.append(text)
            field.append(texts[text])
    return gzip.compress(message.SerializeToString())


def _inputs(profile: Profile) -> list[tuple[bool, InputShapes, bool, InputDtypes]]:
    ops = profile.ops
    recorded = zip((ops.shapes > 0).tolist(), (ops.dtypes > 0).tolist(), strict=True)
    return [
        (shapes, profile.shapes_of(op), dtypes, profile.dtypes_of(op)) for op, (shapes, dtypes) in enumerate(recorded)
    ]


def test_a_profile_of_schema_1_has_the_same_inputs(training: Any) -> None:
    trace = training("fp16")
    trace.op("aten::cat", 1, 1, dims=[[[2, 3], [4, 3]], []], types=["TensorList", "Scalar"])
    trace.op("aten::empty", 3, 1, dims=[], types=[])
    profile = trace.profile()
    assert {len(profile.input_shapes) > 3, len(profile.input_dtypes) > 2} == {True}

    old = decode(_in_schema_1(profile))

    assert _inputs(old) == _inputs(profile)
    assert old.strings[: len(profile.strings)] == profile.strings


@pytest.mark.parametrize("run", ["lenet/fp32", "resnet50/amp-bf16"])
def test_a_recorded_run_of_schema_1_is_the_same_when_stored_again(run: str) -> None:
    (path,) = (RECORDED / run).glob("*tfevents*")
    profile = read_profiles(path)[0].profile
    assert profile.ops.shapes.any()

    again = decode(encode(profile))

    assert _inputs(again) == _inputs(profile)
    assert (again.input_shapes, again.input_dtypes) == (profile.input_shapes, profile.input_dtypes)
