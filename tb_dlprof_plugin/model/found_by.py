"""What marks the iterations of a recording, in words: `Iterations.found_by`."""

from __future__ import annotations

_WORDS = {
    "profiler_step": "prof.step()",
    "optimizer_step": "the optimizer's steps",
    "step_annotation": "the program's step annotations",
    "program_run": "the runs of the main compiled program",
    "inference": "the recorded inferences",
    "nvtx_ranges": "numbered or repeated NVTX ranges",
    "tensorrt_executions": "TensorRT's executions",
    "xla_modules": "the runs of the main compiled program",
    "global_step": "the node global_step",
    "key_node": "the key node",
    "none": "none marked",
}


def found_by_words(found_by: str) -> str:
    """The words of a page or command; a value that is new here stands with spaces."""
    return _WORDS.get(found_by) or found_by.replace("_", " ")
