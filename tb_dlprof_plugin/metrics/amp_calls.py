"""Finds the calls that mixed precision adds (casts, GradScaler), and those that run code from torch.compile.

A run in FP32 has no casts and no GradScaler, so they are separate buckets and not a mismatch.
"""

from __future__ import annotations

import numpy as np

from tb_dlprof_plugin.model.dtypes import InputDtypes
from tb_dlprof_plugin.model.frameworks import PYTORCH
from tb_dlprof_plugin.model.lookup import rows_of_each, take_or
from tb_dlprof_plugin.model.profile import Bools, CallKind, Ints, Role
from tb_dlprof_plugin.model.shapes import has_sizes
from tb_dlprof_plugin.model.tree import inherit, outermost
from tb_dlprof_plugin.names.ops import AUTOGRAD_NODE, COPY
from tb_dlprof_plugin.profile_view import ProfileView, per_view
from tb_dlprof_plugin.simulation.call_names import calls_named

_CONVERSIONS = ("aten::to", "aten::_to_copy")
_CAST_KERNELS = ("float16_copy_kernel", "bfloat16_copy_kernel", "float8_copy_kernel")
_AMP_PREFIX = "aten::_amp_"
_BACKWARD_OF_SCALING = f"{AUTOGRAD_NODE}MulBackward0"
_UNSCALE_NEIGHBOURS = frozenset(
    "aten::" + name
    for name in (
        "to", "_to_copy", "reciprocal", "full", "zeros", "fill_", "zero_", "add", "add_", "sum", "item", "copy_",
    )
)  # fmt: skip
"""What `GradScaler.unscale_`, `step` and `update` call on scalars, in a row with the ``_amp_`` ops."""
_COMPILED_PREFIXES = ("Torch-Compiled Region", "CompiledFunction", "## Call CompiledFxGraph", "triton_")
_COMPILED_NODE = f"{AUTOGRAD_NODE}CompiledFunction"


def cast_calls(view: ProfileView) -> Bools:
    """Per row of `Profile.calls` whether it lies in a conversion from one floating-point type to another.

    Determined by the types of the ``aten::copy_`` inside, or by the kernel's name if types were not recorded.
    Conversions from integers or booleans belong to the model.
    """
    parent = view.call_parent
    copy = calls_named(view, CallKind.OP, COPY.__eq__)
    conversion = calls_named(view, CallKind.OP, _CONVERSIONS.__contains__)
    inside = (copy & _between_floats(view)) | _launches_cast_kernel(view)
    # From the copy up through the conversions around it; their allocations launch nothing.
    for _ in range(len(_CONVERSIONS) + 1):
        above = np.zeros(len(parent), dtype=np.bool_)
        above[parent[inside & (parent >= 0)]] = True
        inside = inside | (above & (conversion | (copy & _untyped(view))))
    return inherit(inside, inside, parent)


def scaler_calls(view: ProfileView) -> Bools:
    """Per row of `Profile.calls` whether it lies in GradScaler's work: scaling the loss and its backward node,
    unscaling, the check for overflow, the wait for its result, the new scale. None where no ``_amp_`` op ran."""
    calls = view.profile.calls
    amp = calls_named(view, CallKind.OP, lambda name: name.startswith(_AMP_PREFIX)) & _tops(view)
    if not amp.any():
        return np.zeros(len(calls), dtype=np.bool_)
    scaling = amp | _scalings(view)
    neighbours = calls_named(view, CallKind.OP, _UNSCALE_NEIGHBOURS.__contains__) & _scalar_inputs(view)
    tops = np.flatnonzero(_tops(view))
    for _, rows in rows_of_each(calls.thread[tops]):
        rows = tops[rows]
        scaling[rows] |= _touching(amp[rows], neighbours[rows])
    return inherit(scaling, scaling, view.call_parent)


@per_view
def compiled_calls(view: ProfileView) -> Bools:
    """Per row of `Profile.calls` whether it lies in code that torch.compile made."""
    if view.profile.source.framework != PYTORCH:
        return np.zeros(len(view.profile.calls), dtype=np.bool_)
    named = view.profile.ops_named(lambda name: name.startswith((*_COMPILED_PREFIXES, _COMPILED_NODE)))
    ops, op = view.profile.ops, view.profile.calls.op
    compiled = (named & (ops.kind != CallKind.MODULE))[op]
    return inherit(compiled, compiled, view.call_parent) if compiled.any() else compiled


def op_or_region(view: ProfileView) -> Ints:
    """Per row of `Profile.calls` the row of the outermost op around it, in compiled code of the whole region: what
    Inductor's wrapper does between its launches is neither of an op nor the user's. -1 for none."""
    compiled = compiled_calls(view)
    if not compiled.any():
        return view.call_top
    return np.where(compiled, outermost(compiled, view.call_parent), view.call_top)


def _tops(view: ProfileView) -> Bools:
    return view.profile.ops.top[view.profile.calls.op]


def _between_floats(view: ProfileView) -> Bools:
    profile = view.profile
    changes = np.array([_changes_float(dtypes) for dtypes in profile.input_dtypes], dtype=np.bool_)
    return changes[profile.ops.dtypes][profile.calls.op]


def _changes_float(dtypes: InputDtypes) -> bool:
    """Whether ``copy_(target, source)`` has two different floating-point types."""
    return len(dtypes) >= 2 and dtypes[0] != dtypes[1] and dtypes[0].kind == dtypes[1].kind == "float"


def _launches_cast_kernel(view: ProfileView) -> Bools:
    """Calls that launched a kernel named after what it converts to."""
    profile = view.profile
    named = profile.kernels_where(name=lambda name: any(mark in name for mark in _CAST_KERNELS))
    result = np.zeros(len(profile.calls), dtype=np.bool_)
    result[profile.launches.call[named[profile.launches.kernel] & (profile.launches.call >= 0)]] = True
    return result


def _untyped(view: ProfileView) -> Bools:
    """Calls whose input types were not recorded."""
    profile = view.profile
    untyped = np.array([not dtypes for dtypes in profile.input_dtypes], dtype=np.bool_)
    return untyped[profile.ops.dtypes][profile.calls.op]


def _scalings(view: ProfileView) -> Bools:
    """The product of loss and scale, the last op before a backward pass begins, and its backward node, the first."""
    profile, calls = view.profile, view.profile.calls
    tops = np.flatnonzero(_tops(view))
    tops = tops[np.argsort(calls.start_ns[tops], kind="stable")]
    role = profile.ops.role[calls.op[tops]]
    product = calls_named(view, CallKind.OP, "aten::mul".__eq__)[tops] & _scalar_inputs(view)[tops]
    product &= role != Role.BACKWARD
    node = calls_named(view, CallKind.OP, _BACKWARD_OF_SCALING.__eq__)[tops]
    result = np.zeros(len(calls), dtype=np.bool_)
    products = np.flatnonzero(product)
    begins = np.flatnonzero((role == Role.BACKWARD) & np.append(True, role[:-1] != Role.BACKWARD))
    for begin in begins[node[begins]].tolist():
        last = int(np.searchsorted(products, begin)) - 1
        # Autograd makes the root gradient in between.
        if last >= 0 and begin - products[last] <= 3:
            result[tops[products[last]]] = result[tops[begin]] = True
    return result


def _scalar_inputs(view: ProfileView) -> Bools:
    """Calls whose inputs have no dimensions, or whose shapes were not recorded."""
    profile = view.profile
    scalars = np.array([not has_sizes(shapes) for shapes in profile.input_shapes], dtype=np.bool_)
    return scalars[profile.ops.shapes][profile.calls.op]


def _touching(anchors: Bools, neighbours: Bools) -> Bools:
    """Anchors, and the runs of ``neighbours`` that end or begin at one."""
    chain = anchors | neighbours
    number = np.cumsum(~chain)
    anchored = np.unique(number[anchors])
    return chain & np.isin(number, anchored)


def in_calls(flags: Bools, call: Ints) -> Bools:
    """Per launch the flag of its launching call, False where that is unknown."""
    if not len(flags):
        return np.zeros(len(call), dtype=np.bool_)
    return take_or(flags, call, False)
