"""What the allocations of a step asked for: a trace has the bytes of their blocks, which may keep up to 1 MiB more."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection

from tb_dlprof_plugin.metrics.memory import DeviceMemory
from tb_dlprof_plugin.model.profile import Ints
from tb_dlprof_plugin.planning.memory.allocator import ROUND, SMALL, rounded
from tb_dlprof_plugin.planning.memory.module_events import inside
from tb_dlprof_plugin.planning.memory.op_shapes import ITEM_SIZES, OpShapes, elements
from tb_dlprof_plugin.profile_view import ProfileView


class RequestedSizes:
    """Requested bytes by allocation."""

    def __init__(self, view: ProfileView) -> None:
        self._profile, self._shapes = view.profile, OpShapes(view)
        self._all = self._shapes.all_sizes()

    def of(self, memory: DeviceMemory, rows: Ints, gradients: Collection[int]) -> list[int]:
        """Bytes that allocations asked for, those of the block where no tensor explains them.

        Args:
            memory: of the device.
            rows: of the allocations, in it.
            gradients: those of the rows that are a parameter's gradient.
        """
        found = zip(rows.tolist(), memory.bytes[rows].tolist(), memory.call[rows].tolist(), strict=True)
        return [self._one(block, call, row in gradients) for row, block, call in found]

    def _one(self, block: int, call: int, gradient: bool) -> int:
        """A small block is split to 512 bytes, so that only a large one can be more than a tensor took."""
        if block <= SMALL:
            return block
        for sizes in (self._of_parameters(call) if gradient else (), self._shapes.products(call)):
            near = [size for size in sizes if _explains(size, block)]
            if near:
                return max(near)
        sizes = [elements(shape) * item for shape in self._shapes.around(call) for item in ITEM_SIZES]
        near = [size for size in sizes if _explains(size, block)]
        if near:
            return max(near)
        # A tensor that only a later op is given, such as a gradient, is known from there.
        index = bisect_right(self._all, block)
        return self._all[index - 1] if index and _explains(self._all[index - 1], block) else block

    def _of_parameters(self, call: int) -> list[int]:
        """Bytes of the parameters of a call's module and those in it."""
        if call < 0:
            return []
        module = self._profile.strings[int(self._profile.ops.module[self._profile.calls.op[call]])]
        return [
            size
            for row in self._profile.facts.storages
            if row.kind == "parameter" and inside(row.module, module)
            for size in row.bytes
        ]


def _explains(size: int, block: int) -> bool:
    """Whether a request of ``size`` can have got a block."""
    return size > SMALL - ROUND and 0 <= block - rounded(size) <= SMALL
