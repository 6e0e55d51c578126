"""What marks the iterations of a recording, in words: `Iterations.found_by`."""

from __future__ import annotations

_WORDS = {
    "profiler_step": "prof.step()",
    "optimizer_step": "the optimizer's steps",
    "step_annotation": "the program's step annotations",
    "program_run": "the runs of the main compiled program",
    "inference": "the recorded inferences",
    "none": "none marked",
}


def found_by_words(found_by: str) -> str:
    """The words of a page or command; a value that is new here stands with spaces."""
    return _WORDS.get(found_by) or found_by.replace("_", " ")
