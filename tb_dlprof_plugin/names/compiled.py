"""Names of kernels that Inductor generates."""

from __future__ import annotations

_GENERATED = ("triton_", "cpp_")


def is_generated(name: str) -> bool:
    """Whether Inductor generated a kernel of this name."""
    return name.startswith(_GENERATED)
