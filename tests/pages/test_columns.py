"""Each declared column of a row struct can be shown: its sentence, tasks and fields exist."""

from __future__ import annotations

import re
import typing
from typing import Annotated

import msgspec
import pytest
from column_files import typescript

from tb_dlprof_plugin.pages.columns import Column, Task, columns_of
from tb_dlprof_plugin.web.typescript import answers, reachable

STRUCTS = [struct for struct in reachable(answers().values()) if columns_of(struct)]


@pytest.mark.parametrize("struct", STRUCTS)
def test_a_column_says_what_its_numbers_are(struct: type[msgspec.Struct]) -> None:
    headings = [column.declared.heading for column in columns_of(struct)]
    assert len(set(headings)) == len(headings)
    for column in columns_of(struct):
        assert re.fullmatch(r"\S.* .*[.]", column.definition.text), column
        assert set(column.declared.tasks.split()) <= set(typing.get_args(Task)), column
        assert set(column.declared.absent[:1]) <= set(struct.__struct_fields__), column


class Row(msgspec.Struct):
    id: str
    name: Annotated[str, Column("Op", "opName", width=200)]
    step_ms: Annotated[float | None, Column("Step", "How long it took.", "time", sums=True)]


def test_the_unit_follows_from_the_field(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [(column.field, column.unit, column.scale) for column in columns_of(Row)] == [
        ("name", None, 1),
        ("step_ms", "ns", 1e6),
    ]
    monkeypatch.setattr("column_files.answers", lambda: {"rows": Row})
    assert (
        '  { id: "step_ms", header: "Step", definition: "How long it took.", width: "76px", unit: "ns", '
        'scale: 1000000.0, tasks: ["time"], sums: true },'
    ) in typescript()
