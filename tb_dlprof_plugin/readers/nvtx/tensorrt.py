"""TensorRT's ranges: in the domain ``TensorRT`` an execution, and in it one range a layer.

A layer's type is read from its name: "Conv + Relu" of "/layer1/conv1/Conv + /layer1/relu/Relu" and of
"Conv_0 + Relu_1", "Reformatting CopyNode" whatever it reformats for.
"""

from __future__ import annotations

import re

from tb_dlprof_plugin.model.timeline import HostKind, StatedOp
from tb_dlprof_plugin.readers.nvtx.ranges import Meaning

DOMAIN = "TensorRT"
EXECUTIONS = ("ExecutionContext::execute", "ExecutionContext::enqueue")
_NO_LAYER = ("ExecutionContext::", "IExecutionContext", "Builder", "Engine", "Runtime")
_REFORMATTING = re.compile(r"(?:Reformatting|Reformat)\w* ?CopyNode|Reformatting CopyNode")
_WRAPPED = re.compile(r"\{?(PWN|ForeignNode|Myelin\w*)\b")
_REFORMATTED = re.compile(r"CopyNode for (?:Input|Output) Tensor \d+ (?:to|of|from)? ?(.+)", re.DOTALL)
_WRAPPER = re.compile(r"\{?(?:PWN|ForeignNode|Myelin\w*)[(\[]+|\.\.\..*", re.DOTALL)
_END = re.compile(r"\)|, ")
_PARTS = re.compile(r" \+ | \|\| ")
_OUTPUT = re.compile(r"_output_\d+")
_NUMBER = re.compile(r"(?:_\d+)+\Z")
_LONGEST = 120


def is_execution(text: str) -> bool:
    """Whether the range is one run of an engine."""
    return text.startswith(EXECUTIONS)


def meaning(text: str) -> Meaning:
    """What a range of the domain says. A layer's name is its module, too: a network has many of a type."""
    if text.startswith(_NO_LAYER):
        return Meaning(HostKind.ANNOTATION, f"{DOMAIN}:{text}")
    return Meaning(HostKind.OP, text, module=path_of(text), stated=StatedOp(layer_type(text)))


def layer_type(name: str) -> str:
    """The type of a layer, by its name."""
    if _REFORMATTING.match(name):
        return "Reformatting CopyNode"
    wrapped = _WRAPPED.match(name)
    if wrapped and " + " not in name:
        return wrapped[1]
    kinds = [_NUMBER.sub("", _OUTPUT.sub("", part.rpartition("/")[2].strip(" ()"))) for part in _PARTS.split(name)]
    text = " + ".join(dict.fromkeys(filter(None, kinds))) or name
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def path_of(name: str) -> str:
    """The path of the first layer that a name has: "layer1.conv1.Conv" of "/layer1/conv1/Conv + /layer1/relu/Relu"."""
    reformatted = _REFORMATTED.search(name)
    first = _PARTS.split(reformatted[1] if reformatted else name)[0]
    inside = _WRAPPER.sub("", first)
    if inside != first:
        # "PWN(PWN(/a/Sigmoid), /a/Mul)"
        inside = _END.split(inside)[0]
    inside = inside.strip(" /(){}[]")
    return ".".join(filter(None, inside.split("/")))[:_LONGEST]
