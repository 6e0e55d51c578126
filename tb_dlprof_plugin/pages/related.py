"""Returns the ops, kernels and modules related to an op, an op type, a kernel or a module.

It keeps a selection across pages: every page shows the rows with these ids.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
import numpy as np

from tb_dlprof_plugin.model.direction import with_direction
from tb_dlprof_plugin.model.profile import Bools
from tb_dlprof_plugin.model.request import Option
from tb_dlprof_plugin.pages.common import ROLES, KernelText, OpText
from tb_dlprof_plugin.profile_view import ProfileView, Selection, kernel_id
from tb_dlprof_plugin.store.run_ref import RunRef

SubjectKind = Literal["op", "op_type", "kernel", "module"]
GroupKind = Literal["op", "op_type", "module"]
SubjectOption = Annotated[SubjectKind, Option("Kind of the item.")]
IdOption = Annotated[str, Option("Id of an op or kernel, name of an op type or key of a module.")]


class Related(msgspec.Struct, frozen=True):
    """The items related to the ``kind`` of item with this ``id``, in the selected iterations.

    ``ops`` and ``kernels`` are ids. ``modules`` are keys as the Modules page has them: a path, or ":role" for the work
    of one part of the step outside all modules. Of an op: itself, the kernels that it launched and its module; of an
    op type: those of all its ops. Of a kernel: the ops that launched it and their modules. Of a module: all ops in it
    and in the modules below it.
    """

    ref: RunRef
    kind: SubjectKind
    id: str
    name: str
    ops: list[str]
    kernels: list[str]
    modules: list[str]


def related(view: ProfileView, ref: RunRef, selection: Selection, kind: SubjectOption, id: IdOption) -> Related:
    """What belongs to an op, a kernel (by id), an op type (by name) or a module (by key).

    Raises:
        KeyError: the recording has no item of this kind and id.
    """
    launches = view.profile.launches
    rows = np.flatnonzero(view.selected_launches(selection) & (view.launch_group >= 0))
    groups, kernels = np.unique(np.stack((view.launch_group[rows], launches.kernel[rows])), axis=1)
    if kind == "kernel":
        wanted = kernel_row(view, id)
        mine = np.zeros(len(view.groups), dtype=np.bool_)
        mine[groups[kernels == wanted]] = True
        name = KernelText(view, wanted).short_name
        launched = [wanted]
    else:
        mine, name = groups_of(view, kind, id)
        launched = np.unique(kernels[mine[groups]]).tolist()
    members = np.flatnonzero(mine).tolist()
    return Related(
        ref=ref,
        kind=kind,
        id=id,
        name=name,
        ops=[view.groups.ids[group] for group in members],
        kernels=[kernel_id(view, kernel) for kernel in launched],
        modules=[id] if kind == "module" else sorted({_module_key(view, group) for group in members}),
    )


def kernel_row(view: ProfileView, subject: str) -> int:
    """The row of `Profile.kernels` with this id.

    Raises:
        KeyError: nothing that was launched has this id.
    """
    used = np.unique(view.profile.launches.kernel).tolist()
    found = next((kernel for kernel in used if kernel_id(view, kernel) == subject), None)
    if found is None:
        raise KeyError(subject)
    return int(found)


def groups_of(view: ProfileView, kind: GroupKind, subject: str) -> tuple[Bools, str]:
    """Which rows of `ProfileView.groups` belong to an op, an op type or a module, and its name.

    Raises:
        KeyError: the recording has no item of this kind and id.
    """
    if kind == "op_type":
        return _op_type(view, subject)
    return _op(view, subject) if kind == "op" else _module(view, subject)


def _op(view: ProfileView, subject: str) -> tuple[Bools, str]:
    if subject not in view.groups.ids:
        raise KeyError(subject)
    group = view.groups.ids.index(subject)
    mine = np.zeros(len(view.groups), dtype=np.bool_)
    mine[group] = True
    op = OpText(view, group)
    return mine, with_direction(op.name, op.direction)


def _op_type(view: ProfileView, subject: str) -> tuple[Bools, str]:
    mine = view.profile.named(view.groups.op_type, subject.__eq__)
    if not mine.any():
        raise KeyError(subject)
    return mine, subject


def _module(view: ProfileView, subject: str) -> tuple[Bools, str]:
    keys = [_module_key(view, group) for group in range(len(view.groups))]
    if subject == ".":
        return np.array([not key.startswith(":") for key in keys], dtype=np.bool_), "the whole model"
    mine = np.array([key == subject or key.startswith(f"{subject}.") for key in keys], dtype=np.bool_)
    if not mine.any():
        raise KeyError(subject)
    return mine, f"outside modules: {subject[1:]}" if subject.startswith(":") else subject


def _module_key(view: ProfileView, group: int) -> str:
    module = view.profile.strings[view.groups.module[group]]
    return module or f":{ROLES[int(view.groups.role[group])]}"
