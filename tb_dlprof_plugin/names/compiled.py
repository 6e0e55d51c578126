"""Names that torch.compile gives to kernels and ranges."""

from __future__ import annotations

COMPILED_REGION = "Torch-Compiled Region: "
"""Begins the name of the range around each call of code that Dynamo compiled; the compilation's id follows."""
_GENERATED = ("triton_", "cpp_")


def is_generated(name: str) -> bool:
    """Whether Inductor generated a kernel of this name."""
    return name.startswith(_GENERATED)
