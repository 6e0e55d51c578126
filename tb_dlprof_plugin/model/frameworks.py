"""Frameworks that recordings are of, by the names that `Timeline.framework` and `Source.framework` hold."""

from __future__ import annotations

PYTORCH, TENSORFLOW, JAX, TENSORRT, ONNXRUNTIME = "pytorch", "tensorflow", "jax", "tensorrt", "onnxruntime"
_TITLES = {
    PYTORCH: "PyTorch", TENSORFLOW: "TensorFlow", JAX: "JAX", TENSORRT: "TensorRT", ONNXRUNTIME: "ONNX Runtime",
}  # fmt: skip


_OF_PYTHON = frozenset({PYTORCH, TENSORFLOW, JAX})
"""Frameworks whose steps are driven from Python; programs of the others are of any language."""


def is_of_python(framework: str) -> bool:
    """Whether the steps of a framework are driven from Python."""
    return framework in _OF_PYTHON


def between_ops(framework: str) -> str:
    """What a CPU outside every recorded call runs: a label of idle time of the GPU."""
    return "Python between ops" if framework in _OF_PYTHON else "CPU between calls"


def while_between_ops(framework: str) -> str:
    """The same as the rest of a sentence after "while"."""
    return "the CPU runs Python between ops" if framework in _OF_PYTHON else "the CPU is between recorded calls"


def loader_title(framework: str) -> str:
    """What the part of a program is called that loads its batches."""
    return "DataLoader" if framework == PYTORCH else "Input pipeline"


def framework_title(framework: str) -> str:
    """A framework's own spelling; "" for an unknown one."""
    return _TITLES.get(framework, framework)


def recording_of(framework: str) -> str:
    """ "this recording is of JAX", as the end of a sentence."""
    title = framework_title(framework)
    return f"this recording is of {title}" if title else "this recording does not say which framework it is of"
