"""Programs that profile themselves, copy and compile their models, and fork do the same with the hook as without it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")

from support.hook_programs import PROGRAMS, Program, draw, try_program
from support.marks import short_of
from support.program_server import ProgramServer

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are seen through /proc")

SHORT = {
    *(
        f"{name} + a recorded step"
        for name in (
            "torch.profiler", "autograd profiler", "emit_itt", "every thread", "a range that ends in a profiler",
        )
    ),
    *(
        f"torch.profiler + {name}"
        for name in (
            "the warm-up", "from before to within", "over boundaries", "own steps", "an optimizer hook",
            "another thread over boundaries", "an exception",
        )
    ),
    *(
        f"{name} + torch.profiler + from within to after"
        for name in ("profile from the first step", "profile without step", "profile twice", "trace handler next to it")
    ),
    *(f"trace handler next to it + {name} + 2" for name in ("several", "jit.script", "compile method")),
    "several", "stepping child", "child that exits", "warnings are errors", "loader workers",
}  # fmt: skip
"""Half of all. In most of them nothing is left to analyse."""


@pytest.fixture(scope="module")
def server() -> Iterator[ProgramServer]:
    with ProgramServer.running() as running:
        yield running


@pytest.mark.parametrize("program", short_of(PROGRAMS, SHORT, lambda one: one.name), ids=lambda one: one.name)
def test_the_hook_changes_nothing(server: ProgramServer, program: Program, tmp_path: Path) -> None:
    outcome = try_program(server, program, tmp_path)
    assert outcome.harm == []
    assert (outcome.alone.status, outcome.alone.err.count("Traceback")) == (0, 0), outcome.alone.err


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_the_hook_changes_nothing_in_drawn_programs(server: ProgramServer, seed: int, tmp_path: Path) -> None:
    for number, program in enumerate(itertools.islice(draw(seed), 10)):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert (program, try_program(server, program, folder).harm) == (program, [])
