"""The layers of an engine, from ``trtexec --exportLayerInfo``: types, inputs, kernels."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tb_dlprof_plugin.model.dtypes import InputDtypes, dtype_named
from tb_dlprof_plugin.model.shapes import InputShapes, Shape
from tb_dlprof_plugin.readers.json_file import decoded, text_of

_DATATYPE = re.compile(r"(?i)\b(FP8|FP16|BF16|BFloat16|FP32|FP64|TF32|INT8|INT32|INT64|Half|Float|Bool)\b")
_NAMES = {
    "fp8": "float8_e4m3fn", "fp16": "float16", "half": "float16", "bf16": "bfloat16", "bfloat16": "bfloat16",
    "fp32": "float32", "float": "float32", "tf32": "float32", "fp64": "float64", "int8": "int8", "int32": "int32",
    "int64": "int64", "bool": "bool",
}  # fmt: skip
_MOST_INPUTS = 8


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer. ``kernel`` is TensorRT's tactic, "" where it is not named; without details only the name is known."""

    name: str
    type: str = "layer"
    kernel: str = ""
    shapes: InputShapes = ()
    dtypes: InputDtypes = ()


def read_layers(path: Path) -> list[Layer]:
    """The layers in the order of the engine.

    Raises:
        TraceError: the file is no JSON.
    """
    content = decoded(path, text_of(path))
    layers = content.get("Layers") if isinstance(content, dict) else None
    return [_layer(layer) for layer in (layers if isinstance(layers, list) else []) if isinstance(layer, (str, dict))]


def _layer(item: str | dict[str, Any]) -> Layer:
    if isinstance(item, str):
        return Layer(item)
    inputs = [_tensor(tensor) for tensor in _list(item.get("Inputs"))[:_MOST_INPUTS] if isinstance(tensor, dict)]
    weights = _weights(item, inputs[0][0] if inputs else ())
    if weights is not None:
        inputs.append(weights)
    return Layer(
        name=str(item.get("Name") or ""),
        type=str(item.get("ParameterType") or item.get("LayerType") or "layer"),
        kernel=str(item.get("TacticName") or ""),
        shapes=tuple(shape for shape, _ in inputs),
        dtypes=tuple(dtype_named(dtype) for _, dtype in inputs),
    )


def _tensor(item: dict[str, Any]) -> tuple[Shape, str]:
    sizes = _list(item.get("Dimensions"))
    known = all(isinstance(size, int) and 0 <= size < 2**40 for size in sizes)
    return tuple(sizes) if known else (), _dtype(str(item.get("Format/Datatype") or item.get("Datatype") or ""))


def _weights(item: dict[str, Any], image: Shape) -> tuple[Shape, str] | None:
    """The filter of a convolution: its shape is not exported, but follows from what is."""
    weights, kernel, out, groups = (item.get(key) for key in ("Weights", "Kernel", "OutMaps", "Groups"))
    if not isinstance(weights, dict) or not isinstance(kernel, list) or not isinstance(out, int) or len(image) < 3:
        return None
    if not isinstance(groups, int) or groups < 1 or not all(isinstance(size, int) for size in kernel):
        return None
    return (out, image[1] // groups, *kernel), _dtype(str(weights.get("Type") or ""))


def _dtype(text: str) -> str:
    found = _DATATYPE.search(text)
    return _NAMES[found[1].lower()] if found else ""


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
