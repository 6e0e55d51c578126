"""Finds, among the compiled functions that a script calls, the one whose calls are its iterations."""

from __future__ import annotations

from dataclasses import dataclass

_MOST_FUNCTIONS = 10_000
"""A script that compiles again in each step would make the table grow with it."""
_PART_OF_STEPS = 0.5
"""A function that is called in at least this share of the iterations belongs to them."""


@dataclass(slots=True)
class _Function:
    calls: int = 0
    first_ns: int = 0
    iterations: int = 0
    """In which it was called."""
    last_in: int = -1
    """The iteration of its last call."""


class StepFunction:
    """The step's function is the one that is called again and took longest in its first call.

    A first call traces and compiles, which takes the longer the larger the program: longest for the training step among
    functions that also evaluate, prepare data or add up metrics. What is called only once initialises something.
    """

    def __init__(self) -> None:
        self._functions: dict[int, _Function] = {}
        self._chosen: int | None = None
        # Since the step's function was chosen.
        self._iteration = 0

    @property
    def calls(self) -> int:
        """Calls so far of the function that is called most."""
        chosen = self._functions.get(-1 if self._chosen is None else self._chosen)
        return chosen.calls if chosen else max((one.calls for one in self._functions.values()), default=0)

    def begin(self, key: int) -> int | None:
        """A call begins; its number, from 0, where it is an iteration."""
        known = self._functions.get(key)
        if known is None:
            if len(self._functions) < _MOST_FUNCTIONS:
                self._functions[key] = _Function()
            return None
        if known.calls == 0:
            return None
        if key != self._chosen:
            chosen = None if self._chosen is None else self._functions[self._chosen]
            if chosen is not None and known.first_ns <= chosen.first_ns:
                return None
            self._chosen = key
            self._iteration = 0
            for one in self._functions.values():
                one.iterations, one.last_in = 0, -1
        self._iteration += 1
        return known.calls

    def is_apart(self, key: int) -> bool:
        """Another function than the step's is called: whether most iterations do without it, as without an evaluation.
        False while no iteration has ended."""
        if self._iteration < 2 or key == self._chosen:
            return False
        known = self._functions.get(key)
        if known is None:
            return True
        if known.last_in < self._iteration:
            known.last_in = self._iteration
            known.iterations += 1
        return known.iterations < _PART_OF_STEPS * self._iteration

    def end(self, key: int, duration_ns: int) -> None:
        """A call has ended, after so many nanoseconds."""
        known = self._functions.get(key)
        if known is not None:
            known.calls += 1
            if known.calls == 1:
                known.first_ns = duration_ns
