"""Frameworks that recordings are of, by the names that `Timeline.framework` and `Source.framework` hold."""

from __future__ import annotations

PYTORCH, TENSORFLOW, JAX, TENSORRT, ONNXRUNTIME = "pytorch", "tensorflow", "jax", "tensorrt", "onnxruntime"
_TITLES = {
    PYTORCH: "PyTorch", TENSORFLOW: "TensorFlow", JAX: "JAX", TENSORRT: "TensorRT", ONNXRUNTIME: "ONNX Runtime",
}  # fmt: skip


def framework_title(framework: str) -> str:
    """A framework's own spelling; "" for an unknown one."""
    return _TITLES.get(framework, framework)


def recording_of(framework: str) -> str:
    """ "this recording is of JAX", as the end of a sentence."""
    title = framework_title(framework)
    return f"this recording is of {title}" if title else "this recording does not say which framework it is of"
