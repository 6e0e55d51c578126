"""The programs that XLA compiled, as far as a recording keeps them ("Hlo Proto"): what each instruction computes.

A command buffer (CUDA graph) runs a program's instructions as one launch; its kernels then name the buffer, not the
instruction. The order in which the program schedules its instructions tells which is which.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from google.protobuf.message import DecodeError

from tb_dlprof_plugin.model.dtypes import InputDtypes, dtype_named
from tb_dlprof_plugin.model.shapes import InputShapes
from tb_dlprof_plugin.model.timeline import StatedOp
from tb_dlprof_plugin.readers import op_names
from tb_dlprof_plugin.readers.xplane.event_table import named_stats, text_of
from tb_dlprof_plugin.readers.xplane.xplane_pb2 import HloComputation, HloInstruction, HloModule, HloProto, XPlane

_ELEMENT_TYPES = {
    1: "bool", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "uint8", 7: "uint16", 8: "uint32", 9: "uint64",
    10: "float16", 11: "float32", 12: "float64", 15: "complex64", 16: "bfloat16", 18: "complex128", 19: "float8_e5m2",
    20: "float8_e4m3fn", 24: "float8_e5m2fnuz", 25: "float8_e4m3fnuz",
}  # fmt: skip
"""PrimitiveType of xla_data.proto."""
_PRODUCTS = {
    "dot": "dot_general", "convolution": "conv_general_dilated", "ragged-dot": "ragged_dot", "scaled-dot": "scaled_dot",
}  # fmt: skip
"""Instructions that Tensor Cores can run, and JAX' primitives that they are made of."""
_LIBRARY_PRODUCT = re.compile(r"__cublas|__cudnn|__onednn|__ynn|triton_kernel_call|__gpu\$")
_LIBRARY_TYPES = (("__cublas", "dot_general"), ("__cudnn$conv", "conv_general_dilated"), ("__cudnn$fmha", "attention"))
"""What calls of libraries compute, whose own names are those of the instructions that were merged into them."""
_NO_KERNEL = frozenset({
    "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "add-dependency", "domain",
    "opt-barrier", "partition-id", "replica-id",
})  # fmt: skip
_CONTROL = frozenset({"while", "conditional", "call", "async-start"})
_MOST_STEPS = 200_000
"""Instructions of one schedule; calls within calls could otherwise repeat without end."""
_PROGRAM_ID = re.compile(r"\((\d+)\)$")


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction that runs on the device: ``is_library`` says that its kernels are not named after it."""

    name: str
    stated: StatedOp
    shapes: InputShapes
    dtypes: InputDtypes
    is_library: bool


class Program:
    """One compiled program."""

    def __init__(self, module: HloModule) -> None:
        self.name = text_of(module.name)
        self._module = module
        self._computations: dict[int, HloComputation] = {one.id: one for one in module.computations}
        self._rows: dict[int, HloInstruction] = {
            instruction.id: instruction
            for computation in module.computations
            for instruction in computation.instructions
        }
        self._differentiated = any(op_names.is_gradient(text_of(row.metadata.op_name)) for row in self._rows.values())

    @cached_property
    def instructions(self) -> dict[str, Instruction]:
        """Those outside fusions, by name."""
        fused = {
            number for row in self._rows.values() if row.opcode == b"fusion" for number in row.called_computation_ids
        }
        return {
            text_of(instruction.name): self._instruction(instruction)
            for computation in self._module.computations
            if computation.id not in fused
            for instruction in computation.instructions
            if text_of(instruction.opcode) not in _NO_KERNEL
        }

    @cached_property
    def schedule(self) -> list[Instruction]:
        """The instructions in the order in which they run; the body of a loop once."""
        order: list[Instruction] = []
        self._append(self._module.entry_computation_id, order, 0)
        return order

    def _append(self, computation: int, order: list[Instruction], depth: int) -> None:
        if computation not in self._computations or depth > 32:
            return
        sequences = self._module.schedule.sequences
        if computation in sequences:
            rows = [self._rows[one] for one in sequences[computation].instruction_ids if one in self._rows]
        else:
            rows = list(self._computations[computation].instructions)
        for row in rows:
            opcode = text_of(row.opcode)
            if opcode in _CONTROL:
                for called in row.called_computation_ids:
                    self._append(called, order, depth + 1)
            elif opcode not in _NO_KERNEL and (found := self.instructions.get(text_of(row.name))) is not None:
                order.append(found)
            if len(order) > _MOST_STEPS:
                return

    def _instruction(self, row: HloInstruction) -> Instruction:
        body = [
            one
            for number in row.called_computation_ids
            if number in self._computations and row.opcode == b"fusion"
            for one in self._computations[number].instructions
        ]
        product = next((one for one in body if text_of(one.opcode) in _PRODUCTS), None)
        # A fusion has the name of its last instruction; that of the product in it says more.
        named = [*([] if product is None else [product]), row, *self._roots(row), *body]
        metadata = next((one.metadata for one in named if one.metadata.op_name), row.metadata)
        opcode, target = text_of(row.opcode), text_of(row.custom_call_target)
        operands = [self._rows[one] for one in (product or row).operand_ids if one in self._rows]
        known = [operand.shape for operand in operands if operand.shape.element_type in _ELEMENT_TYPES]
        kind = text_of(metadata.op_type) or next(
            (name for begin, name in _LIBRARY_TYPES if target.startswith(begin)), ""
        )
        if not kind and product is not None:
            kind = _PRODUCTS[text_of(product.opcode)]
        stated = op_names.of_xla(self.name, text_of(metadata.op_name), kind, opcode, self._differentiated)
        return Instruction(
            name=text_of(row.name),
            stated=stated,
            shapes=tuple(tuple(shape.dimensions) for shape in known[:8]),
            dtypes=tuple(dtype_named(_ELEMENT_TYPES[shape.element_type]) for shape in known[:8]),
            is_library=(opcode == "custom-call" and bool(_LIBRARY_PRODUCT.search(target)))
            or opcode in ("dot", "convolution", "copy", "copy-start", "sort", "fft", "cholesky", "triangular-solve")
            or opcode.startswith(("all-", "reduce-scatter", "collective-")),
        )

    def _roots(self, row: HloInstruction) -> list[HloInstruction]:
        if row.opcode != b"fusion":
            return []
        found = [self._computations[one].root_id for one in row.called_computation_ids if one in self._computations]
        return [self._rows[one] for one in found if one in self._rows]


class Programs:
    """The programs of a recording; each is parsed when it is first asked for."""

    def __init__(self, planes: list[XPlane]) -> None:
        self._by_id: dict[int, bytes] = {}
        self._by_name: dict[str, bytes] = {}
        self._parsed: dict[bytes, Program | None] = {}
        for plane in planes:
            for number, metadata in plane.event_metadata.items():
                stat = named_stats(plane, metadata.stats).get("hlo proto")
                text = stat.bytes_value if stat is not None else metadata.metadata
                if not text:
                    continue
                name = text_of(metadata.name)
                found = _PROGRAM_ID.search(name)
                self._by_id[int(found[1]) if found and len(found[1]) < 19 else number] = text
                self._by_name.setdefault(_PROGRAM_ID.sub("", name), text)

    def __bool__(self) -> bool:
        return bool(self._by_id)

    def find(self, program_id: int, name: str) -> Program | None:
        """The program of this number, else of this name; None where the recording does not hold it."""
        text = self._by_id.get(program_id) or self._by_name.get(name)
        if text is None:
            return None
        if text not in self._parsed:
            proto = HloProto()
            try:
                proto.ParseFromString(text)
                self._parsed[text] = Program(proto.hlo_module)
            except DecodeError:
                self._parsed[text] = None
        program = self._parsed[text]
        return program if program is None or not name or program.name == name or not program.name else None
