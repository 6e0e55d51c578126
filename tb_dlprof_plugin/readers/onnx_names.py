"""The module of an ONNX node, from the name that exporters give it: "/layer1/layer1.0/conv1/Conv"."""

from __future__ import annotations


def module_of(node: str) -> str:
    """ "layer1.0.conv1" of that name; "" for a name without a path.

    PyTorch's exporter repeats the path of a module inside a Sequential: "/layer1/layer1.0" is the module layer1.0.
    """
    first = node.partition(" + ")[0].strip("{}").partition("...")[0]
    if not first.startswith("/"):
        return ""
    path = ""
    for part in first.split("/")[1:-1]:
        path = part if not path or part.startswith(f"{path}.") else f"{path}.{part}"
    return path
