"""Parameters of tests, most of which ``make test`` leaves out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet


def long(*values: Any) -> ParameterSet:
    """The values of one case that only ``make test-all`` runs."""
    return pytest.param(*values, marks=pytest.mark.long)


def short_of(
    values: Iterable[Any], short: Collection[str], name_of: Callable[[Any], str] = str
) -> list[Any | ParameterSet]:
    """All the values, of which ``make test`` runs those that are named; a name without a value is an error."""
    found = list(values)
    assert set(short) <= {name_of(value) for value in found}
    return [value if name_of(value) in short else long(value) for value in found]
