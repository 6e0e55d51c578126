"""Processes of the script that have its first imports done and wait: a start then costs what the script itself does.

Each is an interpreter that starts next to the first process, with the isolation, command line and ``__main__`` of any
other. They are no forks of one parent: forks share the addresses of their memory, by which one process of a script may
be faster than another one, so that a second process would confirm nothing; and not every library survives a fork.

The import statements that a script begins with run before anything of the script can have set a variable or a seed. All
processes of a trial run them first and attach the remedies then, whether they waited or not. Of the standard library
alone: it runs in the script's process.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import os
import re
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tb_dlprof_plugin.trial.protocol import TrialRequest

VARIABLE = "TB_DLPROF_TRY_IMPORTS"
"""The environment variable that has a process run the first imports of its script."""
_TURN = "turn"
"""A named pipe in the folder of a process, which waits until it is closed."""
_IMPORTS_S = "imports_s"
"""A file in it with the seconds of the imports."""
_FLAGS = re.compile("-[BObqsu]+")
_INSTALLED = {"site-packages", "dist-packages"}
_STEPS_NEED = ("torch._dynamo", "tb_dlprof_plugin.trial.inside.attach")
"""The first optimizer of a process imports the former."""


class Script(NamedTuple):
    """What a command has Python run: a file, and the folder in which Python looks for its modules."""

    file: Path
    root: Path


def script_of(command: Sequence[str], folder: str) -> Script | None:
    """The script of a command that runs in a folder; None where it starts anything else, such as a launcher."""
    if not Path(command[0]).name.startswith("python"):
        return None
    words = [one for one in command[1:] if not _FLAGS.fullmatch(one)]
    if words[:1] == ["-m"] and len(words) > 1:
        found = _files(Path(folder), words[1].split("."))
        file = found[-1] if found else Path()
        script = Script(file.with_name("__main__.py") if file.name == "__init__.py" else file, Path(folder))
    else:
        file = Path(os.path.realpath(Path(folder, *words[:1])))
        script = Script(file, file.parent)
    is_own = script.file.suffix == ".py" and script.file.is_file() and not _INSTALLED & set(script.file.parts)
    return script if is_own else None


@dataclass
class WaitingProcess:
    """A process that runs the script once it has a request.

    Attributes:
        folder: its own.
        process: its supervisor.
    """

    folder: Path
    process: subprocess.Popen[bytes]

    @staticmethod
    def is_to_wait_in(folder: Path) -> None:
        """Have the process wait that starts with this folder. Raises OSError."""
        os.mkfifo(folder / _TURN)

    @property
    def waits(self) -> bool:
        """Whether its imports are done."""
        with self.asked() as waits:
            return waits

    @property
    def imports_s(self) -> float | None:
        """Seconds of its imports; None before their end."""
        try:
            return float((self.folder / _IMPORTS_S).read_text())
        except (OSError, ValueError):
            return None

    @contextlib.contextmanager
    def asked(self) -> Iterator[bool]:
        """Whether its imports are done: then it goes on with the script after the block, if that writes a request."""
        try:
            turn = os.open(self.folder / _TURN, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            # It does not read: it still imports, or it has ended.
            yield False
            return
        try:
            yield True
        finally:
            os.close(turn)


def prepare(folder: str) -> None:
    """Run the first imports of the script in this process; then wait, where there is no request yet.

    Raises:
        OSError: it cannot wait.
    """
    began_s, waits = time.monotonic(), not TrialRequest.is_in(Path(folder))
    script = None if getattr(sys.flags, "safe_path", False) else script_of(sys.orig_argv, os.getcwd())
    if script is not None:
        sys.path.insert(0, str(script.root))
        # Where one fails, so does the script, which says why.
        with contextlib.suppress(Exception):
            for statement in first_imports(script):
                exec(compile(ast.Module([statement], []), str(script.file), "exec"), {"__name__": "__main__"})
            if waits and "torch" in sys.modules:
                for name in _STEPS_NEED:
                    importlib.import_module(name)
        sys.path.remove(str(script.root))
    if waits:
        cuda = sys.modules.get("torch.cuda")
        if cuda is not None and cuda.is_initialized():
            raise OSError("it would hold memory of the GPU while others are measured")
        Path(folder, _IMPORTS_S).write_text(str(time.monotonic() - began_s))
        while not TrialRequest.is_in(Path(folder)):
            with open(os.path.join(folder, _TURN), "rb") as turn:
                turn.read()


def first_imports(script: Script, seen: set[Path] | None = None) -> Generator[ast.stmt, None, bool]:
    """Import statements of installed packages that a script runs before it does anything else; in the end, whether it
    has nothing else. ``sys.path`` has to be the script's; ``seen`` are files that run already.

    Raises:
        OSError, SyntaxError, ValueError: a file of it cannot be read.
    """
    seen = seen or set()
    seen.add(script.file)
    for statement in ast.parse(script.file.read_bytes()).body:
        for one in _guarded(statement):
            if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
                continue
            if not isinstance(one, ast.Import | ast.ImportFrom):
                return False
            own = _own_files(one, script)
            for file in own:
                if file not in seen and not (yield from first_imports(script._replace(file=file), seen)):
                    return False
            if not own:
                if not all(map(_is_installed, _packages(one))):
                    return False
                yield one
    return True


def _guarded(statement: ast.stmt) -> Sequence[ast.stmt]:
    """What ``try`` guards, where it has nothing but handlers; nothing of what is for type checkers alone."""
    if isinstance(statement, ast.Try) and not statement.orelse and not statement.finalbody:
        return statement.body
    if isinstance(statement, ast.If) and not statement.orelse and ast.unparse(statement.test) in _TYPE_CHECKING:
        return ()
    return (statement,)


_TYPE_CHECKING = ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def _packages(statement: ast.Import | ast.ImportFrom) -> list[str]:
    names = [one.name for one in statement.names] if isinstance(statement, ast.Import) else [statement.module or ""]
    return [name.partition(".")[0] for name in names]


def _own_files(statement: ast.Import | ast.ImportFrom, script: Script) -> list[Path]:
    """Files of the script's own folder that the statement runs, in this order."""
    if isinstance(statement, ast.Import):
        return [file for one in statement.names for file in _files(script.root, one.name.split("."))]
    base = script.file.parents[statement.level - 1] if statement.level else script.root
    parts = statement.module.split(".") if statement.module else []
    found = _files(base, parts)
    if found or statement.level:
        found += [file for one in statement.names for file in _files(base, [*parts, one.name])[len(parts) :]]
    return found


def _files(base: Path, parts: Sequence[str]) -> list[Path]:
    """Of a module and the packages above it, the outermost first; fewer where there are none."""
    found = []
    for part in parts:
        package, module = base / part / "__init__.py", base / f"{part}.py"
        file = package if package.is_file() else module
        if not file.is_file():
            break
        found.append(file)
        base /= part
    return found


def _is_installed(name: str) -> bool:
    """Whether a module comes with Python or lies where packages are installed."""
    if name in sys.builtin_module_names or name == "__future__":
        return True
    spec = importlib.util.find_spec(name) if name else None
    places = [] if spec is None else [spec.origin or "", *(spec.submodule_search_locations or ())]
    stdlib = os.path.dirname(os.__file__)
    return any(
        _INSTALLED & set(Path(one).parts) or one in ("frozen", "built-in") or one.startswith(stdlib) for one in places
    )
