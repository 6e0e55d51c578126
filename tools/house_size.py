"""How large the house is, and what stands in it twice: a column for each revision.

    python tools/house_size.py [REVISION ...]

Without a revision: what is checked out, committed or not. Generated files do not count. A public name is a class or a
function of a module without an underscore. Options are those of all commands, each counted once for a command.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_GENERATED = re.compile(r"_pb2\.pyi?$|^// Generated|^# Generated|^// Made by|made by `?tools/generate", re.MULTILINE)
_OPTIONS = """
import click, typer
from tb_dlprof_plugin.cli.main import app
group = typer.main.get_command(app)
context = click.Context(group)
options = 0
for name in group.list_commands(context):
    _, listed, _ = group.resolve_command(context, [name])
    command = listed.make_context(name, [], context, resilient_parsing=True).command
    options += sum(one.opts[0].startswith("-") for one in command.get_params(context))
print(options)
"""


def files_of(tree: Path, names: Iterable[str], folder: str, *suffixes: str) -> Iterator[tuple[Path, str]]:
    """Files of a folder and their texts, without generated ones."""
    for name in names:
        if name.startswith(folder + "/") and name.endswith(suffixes):
            text = (tree / name).read_text()
            if not _GENERATED.search(name) and not _GENERATED.search(text[:400]):
                yield tree / name, text


def counts(tree: Path, names: list[str]) -> dict[str, int]:
    """By what was counted."""
    package = list(files_of(tree, names, "tb_dlprof_plugin", ".py"))
    found = {"package: lines of Python": _lines(package)}
    by_part = Counter[str]()
    for path, text in package:
        parts = path.relative_to(tree / "tb_dlprof_plugin").parts
        by_part[parts[0] if len(parts) > 1 else "its own modules"] += text.count("\n")
    found |= {f"  {part}": by_part[part] for part in sorted(by_part)}
    for title, folder, suffixes in (
        ("frontend: lines of TypeScript", "frontend/src", (".ts", ".tsx")),
        ("frontend: lines of CSS", "frontend/src", (".css",)),
        ("tests: lines of Python", "tests", (".py",)),
        ("lab: lines of Python", "lab", (".py",)),
        ("lab: lines of Python", "benchmarks", (".py",)),  # its name in old revisions
    ):
        found[title] = found.get(title, 0) + _lines(files_of(tree, names, folder, *suffixes))
    sizes = [text.count("\n") for _, text in package]
    found |= {
        "package: files": len(sizes),
        "package: files under 30 lines": sum(size < 30 for size in sizes),
        "package: files over 400 lines": sum(size > 400 for size in sizes),
    }
    trees = [ast.parse(text) for _, text in package]
    functions = [n for one in trees for n in ast.walk(one) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    classes = Counter(n.name for one in trees for n in ast.walk(one) if isinstance(n, ast.ClassDef))
    public = [n for one in trees for n in one.body if isinstance(n, ast.FunctionDef | ast.ClassDef)]
    docs = [text for _, text in files_of(tree, names, "docs", ".md")]
    docs += [(tree / name).read_text() for name in names if name.endswith(".md") and "/" not in name]
    found |= {
        "package: public names": sum(not one.name.startswith("_") for one in public),
        "package: functions over 60 lines": sum((n.end_lineno or 0) - n.lineno >= 60 for n in functions),
        "package: class names that stand twice": sum(times > 1 for times in classes.values()),
        "options of commands": _options(tree),
        "docs: words": sum(len(text.split()) for text in docs),
        "all files: kB": sum((tree / name).stat().st_size for name in names if (tree / name).is_file()) // 1000,
    }
    return found


def _lines(files: Iterable[tuple[Path, str]]) -> int:
    return sum(text.count("\n") for _, text in files)


def _options(tree: Path) -> int:
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    done = subprocess.run([sys.executable, "-c", _OPTIONS], cwd=tree, env=environment, capture_output=True, text=True)
    return int(done.stdout) if done.returncode == 0 else -1


def _of_revision(revision: str) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True, check=True).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
        names = _git("ls-tree", "-r", "--name-only", revision)
        return counts(Path(folder), names)


def _git(*words: str) -> list[str]:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()


def main() -> None:
    """Entry point of the script."""
    revisions = sys.argv[1:]
    columns = [_of_revision(one) for one in revisions] or [counts(ROOT, _git("ls-files"))]
    titles = list(dict.fromkeys(title for column in columns for title in column))
    print(f"{'':40}" + "".join(f"{one[:12]:>14}" for one in revisions or ["here"]))
    for title in titles:
        cells = (f"{column[title]:>14,}" if title in column else f"{'':>14}" for column in columns)
        print(f"{title:40}" + "".join(cells))


if __name__ == "__main__":
    main()
