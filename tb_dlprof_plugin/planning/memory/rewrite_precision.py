"""The step of an FP32 run under autocast to FP16 or BF16.

Which ops compute in half precision and which tensors are cast is `dtype_flow`'s answer. Their results take half; a cast
is an allocation of its own before the op. A weight's copy lives until its op's backward pass is over. A cast input is
what the op keeps for its backward pass, so that the tensor that it was made of goes where the op alone had kept it.
Parameters, their gradients and states stay FP32; a gradient that is computed in half precision is there twice for a
moment. Workspaces of a library are taken to be copies of tensors in another layout, as cuDNN makes them for
convolutions, which take half, too; another algorithm may need none or as much as before.
"""

from __future__ import annotations

from dataclasses import replace

from tb_dlprof_plugin.planning.dtype_flow import Cast, Flow, FlowOp, flow, rule_of
from tb_dlprof_plugin.planning.memory.allocator import SMALL, rounded
from tb_dlprof_plugin.planning.memory.op_calls import OpCallShapes, elements
from tb_dlprof_plugin.planning.memory.rewrite_batch import Bound
from tb_dlprof_plugin.planning.memory.step_program import (
    EventEdits,
    Places,
    Slot,
    SlotKind,
    StepProgram,
    UnknownModule,
    is_workspace,
    module_events,
    places,
)
from tb_dlprof_plugin.profile_view import ProfileView

_FULL, _HALF, _EIGHT_BITS = 4, 2, 1
_LINEAR = ("aten::linear", "aten::addmm", "aten::mm")
_CONVERT = ("aten::softmax", "aten::log_softmax", "aten::cross_entropy_loss")
"""Autocast sets their `dtype` instead of casting the input: the kernel reads half precision and writes FP32
(`half_to_float` in torch's `SoftMax.cu`), and that of the backward pass the other way round."""
_CROSS_ENTROPY = "aten::cross_entropy_loss"
_LOSS_BACKWARD = ("aten::nll_loss_backward", "aten::nll_loss2d_backward")
_KEEP_RESULT = ("aten::_softmax", "aten::relu", "aten::clamp_min", "aten::sigmoid", "aten::tanh", "aten::exp")
"""Their backward pass reads their result (`derivatives.yaml`), so that it stays where another op keeps a cast of it."""
_CONVERT_BACKWARD = ("aten::_softmax_backward_data", "aten::_log_softmax_backward_data")


def with_autocast(
    view: ProfileView, program: StepProgram, fp8: bool = False, workspaces: Bound = "likely"
) -> StepProgram:
    """The program of an FP32 run in half precision; FP16 and BF16 take the same.

    Args:
        view: of the recording, with shapes and data types.
        program: its step, as recorded: other changes come later.
        fp8: matrix products read copies of one byte an element of both inputs, and keep these; their results are in
            half precision. So it is in Transformer Engine and, with one scale for a tensor, in early versions of
            torchao (`save_for_backward(input_fp8, weight_fp8_t)` in `float8_linear.py`); with a scale for each row
            torchao keeps both in half precision and casts them again, which takes what BF16 does.
        workspaces: of libraries: half of the recorded ones, none ("low") or the recorded ones ("high").
    """
    return _AutocastRewrite(view, program, fp8, workspaces).result()


class _AutocastRewrite:
    def __init__(self, view: ProfileView, program: StepProgram, fp8: bool, workspaces: Bound) -> None:
        self._view, self._program, self._fp8, self._workspaces = view, program, fp8, workspaces
        iterations = [int(view.call_iteration[slot.call]) for slot in program.slots if slot.call >= 0]
        self._flow: Flow = flow(view, max(iterations, default=0))
        self._where: Places = places(program)
        self._edits = EventEdits(program)
        self._shapes = OpCallShapes(view)
        self._by_call = {op.call: op for op in self._flow.ops}
        self._let_go: set[int] = set()

    def result(self) -> StepProgram:
        own: dict[int, list[int]] = {}
        converted = {cast.elements for op in self._flow.ops if self._converts(op) for cast in op.casts}
        for slot, allocation in enumerate(self._program.slots):
            op = self._op_of(allocation.call)
            if is_workspace(allocation):
                if self._is_half_backward(allocation) or (op is not None and op.half):
                    self._workspace(slot)
            elif op is not None and self._where.made[slot] < self._program.backward_at:
                own.setdefault(op.call, []).append(slot)
                if op.half and self._is_full(allocation, op.call):
                    self._halve(slot)
            elif self._is_half_backward(allocation):
                self._backward(slot)
            elif allocation.reads & converted and self._name(allocation.call) in _CONVERT_BACKWARD:
                self._halve(slot)
        for op in self._flow.ops:
            slots = own.get(op.call)
            if slots and op.casts and not self._converts(op):
                self._cast_inputs(op, slots)
            elif slots and op.casts and self._name(op.call) == _CROSS_ENTROPY:
                self._cross_entropy(slots)
        return self._edits.changed()

    def _name(self, call: int) -> str:
        return self._view.profile.call_name(call)

    def _converts(self, op: FlowOp) -> bool:
        return not op.half and self._name(op.call) in _CONVERT

    def _op_of(self, call: int) -> FlowOp | None:
        """The op that autocast decides on, around a call."""
        while call >= 0:
            op = self._by_call.get(call)
            if op is not None:
                return op
            call = int(self._view.call_parent[call])
        return None

    def _is_full(self, slot: Slot, call: int) -> bool:
        """Whether an allocation of an op holds FP32 numbers; not a mask of bytes, nor a library's workspace."""
        if slot.reduction is not None:
            return False
        if rule_of(self._name(call)) == "half":
            # Products and convolutions make no masks.
            return True
        counts = {elements(shape) for shape in self._shapes.around(slot.call)}
        as_full = any(rounded(count * _FULL) == rounded(slot.bytes) for count in counts)
        return as_full or not any(rounded(count) == rounded(slot.bytes) for count in counts)

    def _is_half_backward(self, slot: Slot) -> bool:
        if slot.call < 0 or slot.kind == SlotKind.OPTIMIZER:
            return False
        profile, top = self._view.profile, int(self._view.call_top[slot.call])
        op = int(profile.calls.op[top if top >= 0 else slot.call])
        return self._flow.backward_half.get((int(profile.ops.module[op]), int(profile.ops.op_type[op])), False)

    def _halve(self, slot: int) -> None:
        one = self._edits.slots[slot]
        self._edits.slots[slot] = replace(one, bytes=max(one.bytes // 2, 1))

    def _workspace(self, slot: int) -> None:
        if self._workspaces == "low":
            self._edits.drop(self._where.made[slot])
            self._edits.drop(self._where.freed[slot])
        elif self._workspaces == "likely":
            self._halve(slot)

    def _backward(self, slot: int) -> None:
        one, made = self._program.slots[slot], self._where.made[slot]
        if made < self._program.backward_at:
            return
        if one.kind == SlotKind.GRADIENT:
            half = self._edits.add(replace(one, bytes=max(one.bytes // 2, 1), kind=SlotKind.TEMPORARY))
            self._edits.put(made, [half + 1])
            self._edits.put(made + 1, [-half - 1])
        elif one.reduction is None:
            self._halve(slot)

    def _cast_inputs(self, op: FlowOp, slots: list[int]) -> None:
        first = min(self._where.made[slot] for slot in slots)
        last = max(self._where.made[slot] for slot in slots)
        module = self._program.slots[slots[0]].module
        end = self._backward_end(module)
        for cast in op.casts:
            new = self._edits.add(
                Slot(
                    cast.elements * self._item(op),
                    SlotKind.ACTIVATION,
                    op.call,
                    module,
                    batch=0.0 if cast.parameter else 1.0,
                )
            )
            self._edits.put(first, [new + 1])
            if cast.differentiated and not cast.parameter:
                self._cast_gradient(cast, op, module, end)
            source = None if cast.parameter else self._source(cast, first)
            freed = end if source is None else self._where.freed[source]
            own = source is not None and self._name(self._program.slots[source].call) in _KEEP_RESULT
            if source is not None and not own and self._program.backward_at <= freed < end:
                # The op alone had kept it.
                self._let_go.add(source)
                self._edits.drop(freed)
                self._edits.put(last + 1, [-source - 1])
                self._edits.put(freed, [-new - 1])
            elif source is not None and freed < self._program.backward_at:
                # What the op does not keep in FP32 it does not keep cast.
                self._edits.put(last + 1, [-new - 1])
            else:
                self._edits.put(end, [-new - 1])

    def _cross_entropy(self, slots: list[int]) -> None:
        """It asks for a log-softmax of its input's own type, which autocast leaves so (`cross_entropy_loss` in torch's
        `LossNLL.cpp`); the loss behind it reads a cast to FP32, which is there until its backward pass, and whose
        gradient is cast back."""
        slot = next((one for one in slots if self._name(self._program.slots[one].call) == "aten::_log_softmax"), None)
        if slot is None:
            return
        one, made, freed = self._program.slots[slot], self._where.made, self._where.freed
        cast = self._edits.add(one)
        self._halve(slot)
        self._edits.put(made[slot] + 1, [cast + 1])
        of_loss = self._first_backward(_LOSS_BACKWARD, made[slot], freed[slot])
        if of_loss is None or rounded(self._program.slots[of_loss].bytes) != rounded(one.bytes):
            self._edits.put(freed[slot], [-cast - 1])
            return
        self._edits.put(made[of_loss] + 1, [-cast - 1])
        behind = self._first_backward(_CONVERT_BACKWARD, made[of_loss], freed[of_loss])
        if behind is not None:
            gradient = self._program.slots[of_loss]
            half = self._edits.add(replace(gradient, bytes=max(gradient.bytes // 2, 1)))
            self._edits.put(made[behind], [half + 1, -of_loss - 1])
            self._edits.drop(freed[of_loss])
            self._edits.put(freed[of_loss], [-half - 1])

    def _first_backward(self, names: tuple[str, ...], after: int, before: int) -> int | None:
        """The first slot that one of these ops makes in the backward pass between two events."""
        made = [
            slot
            for slot, allocation in enumerate(self._program.slots)
            if max(after, self._program.backward_at - 1) < self._where.made[slot] < before
            and self._name(allocation.call) in names
        ]
        return min(made, key=lambda slot: self._where.made[slot], default=None)

    def _item(self, op: FlowOp) -> int:
        """Bytes of an element of a cast input."""
        if not op.half:
            return _FULL
        return _EIGHT_BITS if self._fp8 and self._name(op.call) in _LINEAR else _HALF

    def _cast_gradient(self, cast: Cast, op: FlowOp, module: str, end: int) -> None:
        """The gradient of a cast input is cast back where the op's backward pass ends."""
        size = rounded(cast.elements * _FULL)
        gradients = [
            slot
            for slot, allocation in enumerate(self._program.slots)
            if self._program.backward_at <= self._where.made[slot] < end <= self._where.freed[slot]
            and allocation.module == module
            and rounded(allocation.bytes) == size
        ]
        if not gradients:
            return
        slot, back = gradients[-1], _FULL if op.half else _HALF
        new = self._edits.add(Slot(cast.elements * back, SlotKind.BACKWARD, op.call, module, batch=1.0))
        freed = self._where.freed[slot]
        self._edits.put(end, [new + 1, -slot - 1])
        self._edits.drop(freed)
        self._edits.put(freed, [-new - 1])

    def _source(self, cast: Cast, before: int) -> int | None:
        """The slot that a cast reads: the last one of its size that is there, and that no cast took the place of."""
        if cast.elements * _HALF <= SMALL:
            return None
        size = rounded(cast.elements * _FULL)
        there = [
            slot
            for slot, allocation in enumerate(self._program.slots)
            if self._where.made[slot] < before < self._where.freed[slot]
            and rounded(allocation.bytes) == size
            and slot not in self._let_go
        ]
        return max(there, key=lambda slot: self._where.made[slot], default=None)

    def _backward_end(self, module: str) -> int:
        """Index behind the backward pass of a module, of the forward pass where it has none."""
        try:
            own = module_events(self._program, self._where, module) if module else None
        except UnknownModule:
            own = None
        if own is None or own.backward_last < own.backward_first:
            return self._program.backward_at
        # Up to the next allocation: what comes before it frees what this one has used.
        events = self._program.events
        end = own.backward_last + 1
        while end < len(events) and events[end] < 0:
            end += 1
        return end
