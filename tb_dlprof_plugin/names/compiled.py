"""Names that torch.compile gives to kernels and ranges."""

from __future__ import annotations

import re

COMPILED_REGION = "Torch-Compiled Region: "
"""Begins the name of the range around each call of code that Dynamo compiled; the compilation's id follows."""
GRAPH_CALL = "## Call CompiledFxGraph "
"""Begins the name of the range around each call of a graph that Inductor compiled (torch 2.9 and later)."""
REPLAYED_LIBRARY = "library kernels (replayed)"
"""Stands for what library calls ran between two generated kernels of a replay, where the wrapper is not known."""
_GENERATED = ("triton_", "cpp_")
_FUSED = re.compile(r"(?:triton_(?!tem_)[a-z]+|cpp)_fused_(\w+?)(?:_\d+)?$")


def is_generated(name: str) -> bool:
    """Whether Inductor generated a kernel of this name."""
    return name.startswith(_GENERATED)


def fused_words(name: str) -> str:
    """The ops in a generated kernel's name, in its words: "add_gelu" of "triton_poi_fused_add_gelu_3"; "" for none, and
    for templates, whose name does not say what is fused into them."""
    found = _FUSED.match(name)
    return found[1] if found else ""
