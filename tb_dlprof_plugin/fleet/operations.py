"""Which operation a communication call is, from the names that process groups, ranges and kernels give it."""

from __future__ import annotations

import functools
import re

from tb_dlprof_plugin.fleet.rank_facts import Operation

_BY_WORD = (
    (r"reducescatter", Operation.REDUCE_SCATTER),
    (r"allreduce|crossdevicereduce", Operation.ALL_REDUCE),
    (r"allgather", Operation.ALL_GATHER),
    (r"alltoall|all2all", Operation.ALL_TO_ALL),
    (r"barrier", Operation.BARRIER),
    (r"broadcast", Operation.BROADCAST),
    # Kernels of point-to-point calls and of all-to-all have the same name.
    (r"sendrecv|sendreceive|batchisendirecv", Operation.UNKNOWN),
    (r"recv|receive", Operation.RECEIVE),
    (r"send", Operation.SEND),
    (r"gather", Operation.GATHER),
    (r"scatter", Operation.SCATTER),
    (r"reduce", Operation.REDUCE),
)
"""The first that a name contains, in lower case and without what is no letter or digit."""


@functools.lru_cache(maxsize=4096)
def operation_of(name: str) -> Operation:
    """The operation of a name; `Operation.UNKNOWN` where it says none, or is that of several.

    Args:
        name: such as "_allgather_base", "nccl:all_reduce", "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL",
            "c10d::allgather_" or "AllReduce".
    """
    plain = re.sub(r"[^a-z0-9]", "", name.partition("(")[0].lower())
    return next((operation for word, operation in _BY_WORD if re.search(word, plain)), Operation.UNKNOWN)


_ELEMENT_BYTES = {
    "Byte": 1, "Char": 1, "Bool": 1, "Short": 2, "Int": 4, "Long": 8, "Half": 2, "BFloat16": 2, "Float": 4, "Double": 8,
    "UInt16": 2, "UInt32": 4, "UInt64": 8, "ComplexHalf": 4, "ComplexFloat": 8, "ComplexDouble": 16,
}  # fmt: skip
"""Of the names of c10::ScalarType, as process groups write them; all whose name begins with Float8 have 1."""
_MOST_BYTES = 2**52
"""What an x86-64 processor can address at most (52 bits)."""


def element_bytes_of(dtype: str) -> int:
    """Of such a data type as "BFloat16"; 0 where unknown."""
    return 1 if dtype.startswith("Float8") else _ELEMENT_BYTES.get(dtype, 0)


def buffer_bytes(elements: int, dtype: str) -> int:
    """Bytes of a buffer; -1 where they are not known."""
    size = elements * element_bytes_of(dtype)
    return size if elements >= 0 and element_bytes_of(dtype) and size <= _MOST_BYTES else -1


def whole_bytes(operation: Operation, bytes_in: int, bytes_out: int, members: int) -> int:
    """What the formula of the bus bandwidth calls S, from a rank's own input and output; -1 where it is not known.

    Source: nccl-tests, doc/PERFORMANCE.md.

    Args:
        operation: of the call.
        bytes_in, bytes_out: of one rank; -1 where not recorded.
        members: of the group; 0 where not known.
    """
    if operation in (Operation.ALL_GATHER, Operation.GATHER):
        if bytes_out > 0 and operation == Operation.ALL_GATHER:
            return bytes_out
        return bytes_in * members if bytes_in >= 0 and members else -1
    if operation in (Operation.RECEIVE, Operation.SCATTER) and bytes_out >= 0:
        return bytes_out
    return bytes_in
