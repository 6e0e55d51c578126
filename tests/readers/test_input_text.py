"""Kineto's texts of an op's inputs."""

from __future__ import annotations

import pytest

from tb_dlprof_plugin.model.shapes import InputShapes, TensorList
from tb_dlprof_plugin.readers.input_text import parse_dtypes, parse_shapes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[64, 3, 7, 7], [], [0]]", ((64, 3, 7, 7), (), (0,))),
        ("[[[2, 3], [], [4]], []]", (TensorList(((2, 3), (), (4,))), ())),
        ("[]", ()),
        # Neither sizes nor a list of sizes: that input alone is unknown.
        ('[1, [2, "s0"], [[3], 4], null, [true], [9223372036854775808], [5]]', (None,) * 6 + ((5,),)),
        ("", None),
        ("7", None),
        ("[[2, 3", None),
    ],
)
def test_each_input_has_a_shape_or_is_unknown(text: str, expected: InputShapes | None) -> None:
    found = parse_shapes(text)

    assert found == expected
    assert [type(one) for one in found or ()] == [type(one) for one in expected or ()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('["c10::Half", "", "Scalar", "TensorList"]', ["c10::Half", "", "Scalar", "TensorList"]),
        ('[["float", "c10::Half"], 7, []]', ["float", "", ""]),
        ("[]", []),
    ],
)
def test_each_input_has_a_type(text: str, expected: list[str]) -> None:
    assert [dtype.name for dtype in parse_dtypes(text) or ()] == expected


@pytest.mark.parametrize("text", ["", '"float"', '["float"'])
def test_what_is_no_list_of_types_was_not_recorded(text: str) -> None:
    assert parse_dtypes(text) is None
