"""FLOPs and least bytes of each call of a matrix routine: from its shapes and, for convolutions, from its neighbours.

Neither the size of a convolution's output nor which gradients its backward pass computes is among the recorded shapes
(stride, padding and the output mask are not tensors). Both follow from calls nearby:

- the output has the shape of the gradient with which the same convolution's backward pass begins or, where there is no
  backward pass, that of the next op's input;
- a gradient was computed if a later autograd node of the same backward pass takes one of its shape. So it is with the
  weights of an RNN.

The wrappers of compiled code have both among their arguments. Where they were not recorded, a gradient was computed if
a later launch of compiled code or autograd node of the same backward pass takes a tensor of its shape, or if a kernel
of the call has its name. Where none of this applies, FLOPs are unknown.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.metrics.amp_calls import compiled_calls
from tb_dlprof_plugin.metrics.matrix_work import (
    MatrixWork,
    backward_convolution,
    backward_recurrent,
    forward_convolution,
    is_backward_convolution,
    is_backward_recurrent,
    is_forward_convolution,
    is_matrix_routine,
    recurrent_weights,
    work_of,
    wrapped_convolution,
)
from tb_dlprof_plugin.model.dtypes import InputDtypes
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import CallKind, Ints
from tb_dlprof_plugin.model.shapes import InputShapes, Shape, shape_at, tensors_of
from tb_dlprof_plugin.model.tree import outermost
from tb_dlprof_plugin.names.ops import AUTOGRAD_NODE
from tb_dlprof_plugin.profile_view import ProfileView, Selection, per_selection

UNKNOWN = -1
_MOST_OF_CALL, _MOST_OF_ALL = 2**52, 2**62
"""FLOPs and bytes: 4 PFLOP take the fastest GPU some seconds. More follow from shapes that cannot be, and are unknown;
the sum of all calls fits into an int64."""
_CONVOLUTION_NODE = "ConvolutionBackward"


@dataclass(frozen=True, slots=True)
class MatrixCalls:
    """The selected calls that run a matrix routine, the outermost where such ops call each other; `UNKNOWN` is -1.

    ``call`` holds rows of `Profile.calls`; ``of_call`` gives for each call the row here that it is or lies in, -1 for
    none.
    """

    call: Ints
    flops: Ints
    bytes: Ints
    of_call: Ints

    def __len__(self) -> int:
        return len(self.call)


@per_selection
def matrix_calls(view: ProfileView, selection: Selection) -> MatrixCalls:
    """FLOPs and bytes of the matrix routines that were called in the selected iterations."""
    calls, ops, strings = view.profile.calls, view.profile.ops, view.profile.strings
    kernels = view.profile.compiled_kernels
    wrapped = take_or(kernels.arguments, ops.compiled, 0)
    routine = np.array(
        [
            kind == CallKind.OP and (is_matrix_routine(strings[name]) or bool(arguments))
            for name, kind, arguments in zip(ops.name.tolist(), ops.kind.tolist(), wrapped.tolist(), strict=True)
        ],
        dtype=np.bool_,
    )
    owner = outermost(routine[calls.op], view.call_parent)
    rows = np.flatnonzero((owner == np.arange(len(calls))) & view.selected_calls(selection))
    place = np.full(len(calls) + 1, -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    neighbours = _Neighbours(view)
    by_op: dict[int, MatrixWork | None] = {}
    most = min(_MOST_OF_CALL, _MOST_OF_ALL // max(len(rows), 1))
    flops, moved = np.full(len(rows), UNKNOWN, dtype=np.int64), np.full(len(rows), UNKNOWN, dtype=np.int64)
    for at, (row, op) in enumerate(zip(rows.tolist(), calls.op[rows].tolist(), strict=True)):
        name = strings[ops.name[op]]
        work: MatrixWork | None
        if wrapped[op]:
            if op not in by_op:
                inputs = view.profile.shapes_of(op), view.profile.dtypes_of(op)
                by_op[op] = wrapped_convolution(strings[wrapped[op]], *inputs)
            work = by_op[op]
        elif is_forward_convolution(name):
            work = neighbours.forward(row, op)
        elif is_backward_convolution(name):
            work = neighbours.backward(row, op)
        elif is_backward_recurrent(name):
            work = neighbours.recurrent(row, op)
        else:
            if op not in by_op:
                by_op[op] = work_of(name, view.profile.shapes_of(op), view.profile.dtypes_of(op))
            work = by_op[op]
        if work is not None:
            flops[at] = work.flops if work.flops <= most else UNKNOWN
            moved[at] = UNKNOWN if work.bytes is None or work.bytes > most else work.bytes
    return MatrixCalls(rows, flops, moved, place[owner])


class _Neighbours:
    """Facts about a convolution from the calls around it; each table is built on first use."""

    def __init__(self, view: ProfileView) -> None:
        self._view = view
        self._calls, self._ops, self._strings = view.profile.calls, view.profile.ops, view.profile.strings
        self._outputs: dict[tuple[int, Shape, Shape], set[Shape]] | None = None
        self._received: dict[tuple[int, int, Shape], int] | None = None
        self._compiled = compiled_calls(view)
        self._compiled_takes: dict[tuple[int, int, Shape], int] | None = None
        self._backward_calls: dict[tuple[int, int, int], int] | None = None
        # Calls of an op with the same neighbours do the same work.
        self._forward: dict[tuple[int, Shape], MatrixWork | None] = {}
        self._backward: dict[tuple[int, bool, bool, bool], MatrixWork | None] = {}

    def forward(self, row: int, op: int) -> MatrixWork | None:
        """The forward convolution of call ``row``."""
        shapes, dtypes = self._inputs(op)
        image, weight = shape_at(shapes, 0), shape_at(shapes, 1)
        if image is None or weight is None:
            return None
        module = int(self._ops.module[op])
        found = self._output_shapes().get((module, image, weight), set())
        if len(found) > 1:
            return None
        output = next(iter(found)) if found else self._next_input(row, image)
        if output is None:
            return None
        if (op, output) not in self._forward:
            self._forward[op, output] = forward_convolution(shapes, dtypes, output)
        return self._forward[op, output]

    def backward(self, row: int, op: int) -> MatrixWork | None:
        """The ``aten::convolution_backward`` of call ``row``; unknown outside a convolution's own autograd node, but in
        a replay, where it is that of the capture, and in compiled code."""
        if not self._in_own_node(row):
            if self._compiled[row]:
                return self._compiled_backward(row, op)
            captured = self._captured(op) if self._calls.duration_ns[row] == 0 else -1
            return None if captured < 0 else self.backward(captured, int(self._calls.op[captured]))
        parent = int(self._view.call_parent[row])
        shapes, dtypes = self._inputs(op)
        gradient, image, weight = (shape_at(shapes, at) for at in range(3))
        if gradient is None or image is None or weight is None:
            return None
        # Some recordings hold no shapes of autograd nodes: then no later node can tell.
        if shape_at(self._shapes_of(int(self._calls.op[parent])), 0) != gradient:
            return None
        transposed = self._is_transposed(row, gradient, image, weight)
        if transposed is None:
            return None
        received = self._gradients_received()
        thread, iteration = int(self._calls.thread[row]), int(self._view.call_iteration[row])
        of_image, of_weight = (received.get((thread, iteration, shape), -1) > row for shape in (image, weight))
        if not of_image and not of_weight:
            # The recording ends here rather than that only the bias is trained.
            return None
        key = (op, transposed, of_image, of_weight)
        if key not in self._backward:
            self._backward[key] = backward_convolution(shapes, dtypes, transposed, of_image, of_weight)
        return self._backward[key]

    def _compiled_backward(self, row: int, op: int) -> MatrixWork | None:
        """The same in compiled code whose wrapper was not recorded."""
        shapes, dtypes = self._inputs(op)
        gradient, image, weight = (shape_at(shapes, at) for at in range(3))
        # Both need the channels to tell a transposed one.
        if gradient is None or image is None or weight is None or min(map(len, (gradient, image, weight))) < 3:
            return None
        if gradient[1] == image[1]:
            transposed = False if weight[0] == gradient[1] else None
        else:
            transposed = {image[1]: True, gradient[1]: False}.get(weight[0])
        if transposed is None:
            return None
        key = int(self._calls.thread[row]), int(self._view.call_iteration[row])
        taken = self._taken_by_compiled(), self._gradients_received()
        of_image, of_weight = (
            max(one.get((*key, shape), -1) for one in taken) > row
            or any(part in name for name in self._kernel_names(row))
            for shape, part in ((image, "dgrad"), (weight, "wgrad"))
        )
        return backward_convolution(shapes, dtypes, transposed, of_image, of_weight) if of_image or of_weight else None

    def _taken_by_compiled(self) -> dict[tuple[int, int, Shape], int]:
        """By thread, iteration and shape the last op in compiled code that took a tensor of this shape."""
        if self._compiled_takes is None:
            self._compiled_takes = {}
            rows = np.flatnonzero(self._compiled & (self._ops.kind[self._calls.op] == CallKind.OP))
            columns = (rows, self._calls.op[rows], self._calls.thread[rows], self._view.call_iteration[rows])
            for row, op, thread, iteration in zip(*(column.tolist() for column in columns), strict=True):
                for shape in tensors_of(self._shapes_of(op)):
                    self._compiled_takes[thread, iteration, shape] = row
        return self._compiled_takes

    def _kernel_names(self, row: int) -> list[str]:
        """Of what a call launched."""
        launches, end = self._view.profile.launches, int(self._view.call_end[row])
        kernels = np.unique(launches.kernel[(launches.call >= row) & (launches.call < end)])
        return [self._strings[index] for index in self._view.profile.kernels.name[kernels].tolist()]

    def _in_own_node(self, row: int) -> bool:
        parent = int(self._view.call_parent[row])
        return parent >= 0 and _CONVOLUTION_NODE in self._name(int(self._calls.op[parent]))

    def _captured(self, op: int) -> int:
        """A call of the same convolution in its autograd node, -1 for none."""
        if self._backward_calls is None:
            self._backward_calls = {}
            named = np.array([is_backward_convolution(name) for name in self._names()], dtype=np.bool_)
            for row in np.flatnonzero(named[self._calls.op]).tolist():
                if self._in_own_node(row):
                    self._backward_calls[self._key(int(self._calls.op[row]))] = row
        return self._backward_calls.get(self._key(op), -1)

    def _key(self, op: int) -> tuple[int, int, int]:
        return int(self._ops.module[op]), int(self._ops.shapes[op]), int(self._ops.dtypes[op])

    def recurrent(self, row: int, op: int) -> MatrixWork | None:
        """The RNN backward of call ``row``; unknown where no later node takes a gradient of its weights' shapes."""
        shapes, dtypes = self._inputs(op)
        received = self._gradients_received()
        thread, iteration = int(self._calls.thread[row]), int(self._view.call_iteration[row])
        weights = recurrent_weights(shapes)
        trained = any(received.get((thread, iteration, shape), -1) > row for shape in weights if len(shape) == 2)
        return backward_recurrent(shapes, dtypes) if trained else None

    def _is_transposed(self, row: int, gradient: Shape, image: Shape, weight: Shape) -> bool | None:
        """By the channels, which the weight has in another order; by the forward op's name where they are equal."""
        if gradient[1] != image[1]:
            return {image[1]: True, gradient[1]: False}.get(weight[0])
        top = int(self._view.call_top[row])
        return "transpose" in self._strings[self._ops.op_type[self._calls.op[top]]]

    def _output_shapes(self) -> dict[tuple[int, Shape, Shape], set[Shape]]:
        """Shapes of the output's gradient by module, image and weight of the convolution."""
        if self._outputs is None:
            self._outputs = defaultdict(set)
            for op, name in enumerate(self._names()):
                if not is_backward_convolution(name):
                    continue
                shapes = self._shapes_of(op)
                gradient, image, weight = (shape_at(shapes, at) for at in range(3))
                if gradient is not None and image is not None and weight is not None:
                    self._outputs[int(self._ops.module[op]), image, weight].add(gradient)
        return self._outputs

    def _gradients_received(self) -> dict[tuple[int, int, Shape], int]:
        """By thread, iteration and shape the last call of an autograd node that took a gradient of this shape."""
        if self._received is None:
            self._received = {}
            is_engine = np.array([name.startswith(AUTOGRAD_NODE) for name in self._names()], dtype=np.bool_)
            parent = self._view.call_parent
            inside = (parent >= 0) & is_engine[self._calls.op[np.maximum(parent, 0)]]
            taken: dict[int, list[Shape]] = {}
            rows = np.flatnonzero(inside)
            columns = (rows, self._calls.op[rows], self._calls.thread[rows], self._view.call_iteration[rows])
            for row, op, thread, iteration in zip(*(column.tolist() for column in columns), strict=True):
                if op not in taken:
                    # An op that the engine itself runs, such as the sum of two gradients, takes them as a node does.
                    taken[op] = tensors_of(self._shapes_of(op))
                for shape in taken[op]:
                    self._received[thread, iteration, shape] = row
        return self._received

    def _next_input(self, row: int, image: Shape) -> Shape | None:
        """First input of the next op on the thread, where it can be this convolution's output and not its input."""
        is_op = self._ops.kind == CallKind.OP
        for after in range(int(self._view.call_end[row]), len(self._calls)):
            op = int(self._calls.op[after])
            if self._calls.thread[after] != self._calls.thread[row]:
                return None
            if not is_op[op]:
                continue
            shape = shape_at(self._shapes_of(op), 0)
            # A bias, which is added to the output, has one dimension.
            if shape is not None and len(shape) > 1:
                # Another convolution of the same image would look the same.
                return None if shape == image and "conv" in self._name(op) else shape
        return None

    def _names(self) -> list[str]:
        return [self._strings[name] for name in self._ops.name.tolist()]

    def _name(self, op: int) -> str:
        name: str = self._strings[self._ops.name[op]]
        return name

    def _inputs(self, op: int) -> tuple[InputShapes, InputDtypes]:
        return self._shapes_of(op), self._view.profile.dtypes_of(op)

    def _shapes_of(self, op: int) -> InputShapes:
        return self._view.profile.shapes_of(op)
