"""The names of an op in the reports: the columns Op ID, Op Name, Direction, Op Type and Module, and its inputs."""

from __future__ import annotations

from typing import NamedTuple

from tb_dlprof_plugin.metrics.unattributed_ops import all_ops
from tb_dlprof_plugin.model.direction import DLPROF_DIRECTIONS, direction_of
from tb_dlprof_plugin.model.formatting import dtypes_text
from tb_dlprof_plugin.model.shapes import shape_text
from tb_dlprof_plugin.profile_view import ProfileView, Selection, op_name, per_selection


class OpNames(NamedTuple):
    """The names of one op; ``module`` is None outside every module."""

    id: str
    name: str
    direction: str
    op_type: str
    module: str | None


def op_names(view: ProfileView) -> list[OpNames]:
    """The names of each row of `AllOps`."""
    return _op_names(view, view.selection())


@per_selection
def _op_names(view: ProfileView, everything: Selection) -> list[OpNames]:
    groups, every, strings = view.groups, all_ops(view), view.profile.strings
    result = []
    for row in range(len(groups)):
        module, op_type = strings[groups.module[row]], strings[groups.op_type[row]]
        direction = DLPROF_DIRECTIONS[direction_of(int(groups.role[row]))]
        result.append(OpNames(groups.ids[row], op_name(module, op_type), direction, op_type, module or None))
    for row in range(every.groups, len(every)):
        result.append(OpNames(every.id_of(row), every.name_of(row), "", every.names[row - every.groups], None))
    return result


class Inputs(NamedTuple):
    """Recorded inputs; None where they were not."""

    data_type: str | None
    shapes: list[str] | None


def inputs_text(view: ProfileView, op: int) -> Inputs:
    """Data types and shapes of a row of `Profile.ops`, -1 for none: "fp32", ["[64, 3, 224, 224]", "[64, 3, 7, 7]"]."""
    if op < 0:
        return Inputs(None, None)
    profile = view.profile
    # Scalars have an empty shape and are no tensors.
    shapes = [shape_text(shape) for shape in profile.shapes_of(op) if shape] if profile.ops.shapes[op] else None
    return Inputs(dtypes_text(profile.dtypes_of(op)) or None, shapes)
