"""Writes every file that is made from tables in the code: `make generate`.

The frontend's types, columns, requests, definitions and shapes, which are not part of the repository; the marked
sections of docs/ and the texts of the commands' help, which are. With `--frontend` the frontend's alone, which asks for
the core dependencies only; with `--docs` also docs/definitions.md, which is not part of the repository.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import column_files
import definition_files

from tb_dlprof_plugin.web import typescript, typescript_requests, typescript_shapes

ROOT = Path(__file__).resolve().parents[1]
_FRONTEND = ROOT / "frontend" / "src"


def frontend() -> dict[Path, str]:
    """What each generated file of the frontend must hold."""
    return {
        _FRONTEND / "api" / "types.ts": typescript.render(),
        _FRONTEND / "api" / "columns.ts": column_files.typescript(),
        _FRONTEND / "api" / "requests.ts": typescript_requests.render(),
        _FRONTEND / "testing" / "shapes.ts": typescript_shapes.shapes(),
        _FRONTEND / "format" / "definitions.ts": definition_files.typescript(),
    }


def stale(files: Mapping[Path, str]) -> list[Path]:
    """Those that are missing or hold something else."""
    return [path for path, text in files.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]


def main(arguments: list[str]) -> int:
    """Writes what is stale and names it; returns the exit status."""
    files = frontend()
    if "--frontend" not in arguments:
        # The commands and the remedies, which a build of the package need not import.
        import command_help
        import generated_docs

        files |= {**generated_docs.documents(), command_help.HELP_FILE: command_help.text()}
    if "--docs" in arguments:
        files[ROOT / "docs" / "definitions.md"] = definition_files.docs()
    for path in stale(files):
        path.write_text(files[path], encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
