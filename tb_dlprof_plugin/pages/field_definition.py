"""The sentence on a figure, at the field of a page's struct that holds it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Definition:
    """The tooltip of a figure's label: ``idle_percent: Annotated[float | None, Definition("gpuIdle", "...")]``.

    A sentence on several fields is in `pages.shared_definitions`. `make generate` collects both for the frontend.

    Attributes:
        key: its name in the frontend's `DEFINITIONS`.
        text: the sentence.
    """

    key: str
    text: str
