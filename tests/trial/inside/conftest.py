"""What the tests of the remedies share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tb_dlprof_plugin.trial.inside.hooks import TrialHooks


@pytest.fixture
def hooks() -> Iterator[TrialHooks]:
    """Hooks of a trial, taken back after the test."""
    made = TrialHooks()
    yield made
    made.undo()
