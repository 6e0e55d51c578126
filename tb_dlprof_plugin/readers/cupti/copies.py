"""Names of copies and sets in Kineto's words: "Memcpy HtoD (Pinned -> Device)"."""

from __future__ import annotations

_DIRECTIONS = {
    1: "HtoD", 2: "DtoH", 3: "HtoA", 4: "AtoH", 5: "AtoA", 6: "AtoD", 7: "DtoA", 8: "DtoD", 9: "HtoH", 10: "PtoP",
    11: "HtoD", 12: "DtoH", 13: "DtoD",
}  # fmt: skip
"""CUpti_ActivityMemcpyKind; from 11 on Nsight Systems' own: copies of unified memory, which no call asked for."""
UNIFIED = (11, 12, 13)
MEMORY = ("Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static")
"""By Nsight Systems' number; CUPTI's is one more, because its 0 is unknown."""


def copy_name(kind: int, source: int, target: int) -> str:
    """The name of a copy.

    Args:
        kind: its ``copyKind``.
        source: index of `MEMORY`, any other number for unknown.
        target: as ``source``.
    """
    direction = _DIRECTIONS.get(kind, "Unknown")
    if kind in UNIFIED:
        return f"Memcpy {direction} (Managed -> Managed)"
    return f"Memcpy {direction} ({memory_name(source)} -> {memory_name(target)})"


def set_name(memory: int) -> str:
    """The name of a set of this kind of memory."""
    return f"Memset ({memory_name(memory)})"


def memory_name(kind: int) -> str:
    """A kind of memory; "Unknown" for other numbers."""
    return MEMORY[kind] if 0 <= kind < len(MEMORY) else "Unknown"
