"""Names that torch.compile gives to kernels and ranges."""

from __future__ import annotations

import re
from collections.abc import Sequence

COMPILED_REGION = "Torch-Compiled Region: "
"""Begins the name of the range around each call of code that Dynamo compiled; the compilation's id follows."""
GRAPH_CALL = "## Call CompiledFxGraph "
"""Begins the name of the range around each call of a graph that Inductor compiled (torch 2.9 and later)."""
REPLAYED_LIBRARY = "library kernels (replayed)"
"""Stands for what library calls ran between two generated kernels of a replay, where the wrapper is not known."""
_REPLAYED = {
    "gemm": "matrix products (replayed)",
    "convolution": "convolutions (replayed)",
    "attention": "attention (replayed)",
    "rnn": "recurrent layers (replayed)",
}
"""The same for kernels of a family that names tell, with the copies and sets next to them."""
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


def replayed_libraries(families: Sequence[str]) -> list[str]:
    """What stands for library kernels that follow each other in a replay, by their families: copies, sets and sums are
    of the routine after them, else of that before."""
    names = [_REPLAYED.get(family, "") for family in families]
    for order in (range(len(names) - 2, -1, -1), range(1, len(names))):
        for at in order:
            names[at] = names[at] or names[at + (1 if order.step < 0 else -1)]
    return [name or REPLAYED_LIBRARY for name in names]


def is_replayed_library(name: str) -> bool:
    """Whether an op stands for library kernels of a replay that no wrapper explains."""
    return name == REPLAYED_LIBRARY or name in _REPLAYED.values()
