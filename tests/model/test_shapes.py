"""Shapes of inputs: tensors, scalars, lists of tensors, and what is unknown."""

from __future__ import annotations

from tb_dlprof_plugin.model.shapes import (
    InputShapes,
    InputTable,
    TensorList,
    every_tensor,
    first_tensor,
    has_sizes,
    inputs_text,
    shape_at,
    tensors_of,
)

_LIST = TensorList(((2, 3), (), (4,)))
_INPUTS: InputShapes = ((8, 16), (), _LIST, None, (5,))


def test_only_a_tensor_with_dimensions_has_a_shape() -> None:
    assert [shape_at(_INPUTS, at) for at in range(6)] == [(8, 16), None, None, None, (5,), None]


def test_tensors_of_lists_are_asked_for_apart() -> None:
    assert tensors_of(_INPUTS) == [(8, 16), (5,)]
    assert list(every_tensor(_INPUTS)) == [(8, 16), (2, 3), (4,), (5,)]


def test_the_first_tensor_may_be_in_a_list() -> None:
    assert [first_tensor(shapes) for shapes in (_INPUTS, (_LIST,), ((),), (None,), ())] == [
        (8, 16), (2, 3), (), None, None,
    ]  # fmt: skip


def test_a_size_anywhere_counts() -> None:
    assert [has_sizes(shapes) for shapes in (_INPUTS, ((), _LIST), ((), None), ())] == [True, True, False, False]


def test_the_text_is_kinetos() -> None:
    assert inputs_text(_INPUTS) == "[[8, 16], [], [[2, 3], [], [4]], null, [5]]"
    assert inputs_text(()) == ""


def test_no_inputs_are_another_row_than_inputs_that_were_not_recorded() -> None:
    table: InputTable[InputShapes] = InputTable(())

    assert [table.add(inputs) for inputs in (None, (), _INPUTS, (), None)] == [0, 1, 2, 1, 0]
    assert table.values == [(), (), _INPUTS]
