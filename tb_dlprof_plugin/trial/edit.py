"""Edits of the user's source files, as a unified diff: nothing here writes a file."""

from __future__ import annotations

import ast
import difflib
import io
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_MOST_FILES = 50
"""A patch is for the script and its own modules; a larger project is shown the code instead."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replaces the characters from ``start`` to ``end`` of a file by ``text``. Insertions have ``start == end``."""

    path: Path
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A Python file. ``aliases`` has the full name of each imported name, such as ``{"F": "torch.nn.functional"}``."""

    path: Path
    text: str
    tree: ast.Module
    aliases: dict[str, str] = field(default_factory=dict)
    starts: tuple[int, ...] = ()

    @classmethod
    def of(cls, path: Path, text: str) -> SourceFile:
        """Raises SyntaxError."""
        tree = ast.parse(text)
        starts, at = [], 0
        # Not `splitlines`: a form feed begins no line of ast's.
        for line in text.split("\n"):
            starts.append(at)
            at += len(line) + 1
        return cls(path, text, tree, _aliases(tree), (*starts, len(text)))

    def offset(self, line: int, column: int) -> int:
        """Of a position of ast's: lines from 1, columns in bytes of UTF-8."""
        start = self.starts[line - 1]
        end = self.starts[line] if line < len(self.starts) else len(self.text)
        return start + len(self.text[start:end].encode()[:column].decode(errors="ignore"))

    def start_of(self, node: ast.expr | ast.stmt) -> int:
        """Offset of the first character of a node."""
        return self.offset(node.lineno, node.col_offset)

    def end_of(self, node: ast.expr | ast.stmt) -> int:
        """Offset behind the last character of a node."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.offset(node.end_lineno, node.end_col_offset)

    def line_start(self, node: ast.stmt) -> int:
        """Offset of the first character of the line that a statement begins in."""
        return self.starts[node.lineno - 1]

    def line_end(self, node: ast.stmt) -> int:
        """Offset behind the line that a statement ends in."""
        assert node.end_lineno is not None
        return self.starts[node.end_lineno]

    def source(self, node: ast.expr | ast.stmt) -> str:
        """The text of a node."""
        return self.text[self.start_of(node) : self.end_of(node)]

    def name_of(self, function: ast.expr) -> str:
        """Full dotted name of what is called, through the file's imports; "" for what is no name."""
        parts: list[str] = []
        while isinstance(function, ast.Attribute):
            parts.append(function.attr)
            function = function.value
        if not isinstance(function, ast.Name):
            return ""
        return ".".join([self.aliases.get(function.id, function.id), *reversed(parts)])

    def imports(self, module: str) -> bool:
        """Whether the file has ``import module`` under its own name."""
        return any(
            isinstance(node, ast.Import)
            and any(
                one.asname is None and (one.name == module or one.name.startswith(f"{module}.")) for one in node.names
            )
            for node in ast.walk(self.tree)
        )

    def replace(self, node: ast.expr | ast.stmt, text: str) -> Edit:
        """Replace a node."""
        return Edit(self.path, self.start_of(node), self.end_of(node), text)

    def set_keyword(self, call: ast.Call, name: str, value: str) -> Edit | None:
        """Give an argument by keyword, or change it; None where the call passes ``**arguments``."""
        if any(keyword.arg is None for keyword in call.keywords) or any(isinstance(a, ast.Starred) for a in call.args):
            return None
        for keyword in call.keywords:
            if keyword.arg == name:
                return self.replace(keyword.value, value)
        last = max([*call.args, *(keyword.value for keyword in call.keywords)], key=self.end_of, default=None)
        if last is None:
            at = self.end_of(call) - 1
            return Edit(self.path, at, at, f"{name}={value}")
        return Edit(self.path, self.end_of(last), self.end_of(last), f", {name}={value}")

    def remove(self, statement: ast.stmt) -> Edit | None:
        """Remove a statement with its lines; None where other code is on them, or the block would be empty."""
        start, end = self.line_start(statement), self.line_end(statement)
        rest = self.text[start : self.start_of(statement)] + self.text[self.end_of(statement) : end]
        if rest.strip() or any(block == [statement] for block in _blocks(self.tree)):
            return None
        return Edit(self.path, start, end, "")

    def after_imports(self, *lines: str, module: str = "torch") -> list[Edit]:
        """Insert lines behind the imports at the top of the file, and the import of ``module`` where it has none."""
        last = None
        for statement in self.tree.body:
            docstring = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            if isinstance(statement, ast.Import | ast.ImportFrom):
                last = statement
            elif not docstring and last is not None:
                break
        at = 0 if last is None else self.line_end(last)
        texts = [] if self.imports(module) else [f"import {module}\n"]
        texts += ["\n"] if at else []
        texts += [f"{line}\n" for line in lines]
        if at and self.text[at - 1] != "\n":
            texts.insert(0, "\n")
        # An edit per line: what two remedies insert alike is inserted once.
        return [Edit(self.path, at, at, text) for text in texts]

    def parents(self) -> dict[ast.AST, ast.AST]:
        """The node above each node."""
        return {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}


@dataclass(frozen=True, slots=True)
class Call:
    """A call in a file."""

    file: SourceFile
    node: ast.Call


@dataclass(frozen=True, slots=True)
class ScriptSource:
    """The script, first, and the modules of its folder that it imports."""

    files: tuple[SourceFile, ...]

    @classmethod
    def read(cls, script: Path) -> ScriptSource:
        """Raises OSError, or ValueError (of which SyntaxError and UnicodeDecodeError are) where it is no Python."""
        try:
            return cls(tuple(_reachable(script.resolve())))
        except SyntaxError as error:
            raise ValueError(f"{script} is not Python: {error.msg}, line {error.lineno}") from error

    @property
    def script(self) -> SourceFile:
        """The file that was started."""
        return self.files[0]

    def calls(self, *names: str) -> list[Call]:
        """Calls of functions or classes with these full names, such as ``torch.utils.data.DataLoader``."""
        return [
            Call(file, node)
            for file in self.files
            for node in ast.walk(file.tree)
            if isinstance(node, ast.Call) and file.name_of(node.func) in names
        ]

    def methods(self, name: str) -> list[Call]:
        """Calls of a method of this name, of whatever object."""
        return [
            Call(file, node)
            for file in self.files
            for node in ast.walk(file.tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name
        ]

    def diff(self, edits: Sequence[Edit]) -> str:
        """The edits as a unified diff; "" without any.

        Raises:
            ValueError: two edits overlap, or the result is not Python.
        """
        lines: list[str] = []
        for file in self.files:
            own = [edit for edit in dict.fromkeys(edits) if edit.path == file.path]
            # Insertions at one place stay in the order of the edits.
            own.sort(key=lambda edit: (edit.start, edit.end))
            if not own:
                continue
            after = edited(file.text, own)
            ast.parse(after)
            lines += _diff(os.path.relpath(file.path, self.script.path.parent), file.text, after)
        return "".join(lines)


def edited(text: str, edits: Sequence[Edit]) -> str:
    """The text after edits in order of their place.

    Raises:
        ValueError: two of them overlap.
    """
    parts, at = [], 0
    for edit in edits:
        if edit.start < at:
            raise ValueError(f"{edit.path}: two changes of the same code")
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])


def _diff(name: str, before: str, after: str) -> list[str]:
    """As ``git apply`` and ``patch -p1`` take it."""
    diff = difflib.unified_diff(_lines(before), _lines(after), f"a/{name}", f"b/{name}")
    return [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in diff]


def _lines(text: str) -> list[str]:
    """With their newlines; the last may have none."""
    return list(io.StringIO(text, newline="\n"))


def _reachable(script: Path) -> Iterable[SourceFile]:
    left, seen = [script], {script}
    while left and len(seen) <= _MOST_FILES:
        path = left.pop(0)
        try:
            file = SourceFile.of(path, path.read_text(encoding="utf-8"))
        except (OSError, ValueError, SyntaxError):
            if path == script:
                raise
            continue
        yield file
        for name in _imported(file.tree):
            for folder in dict.fromkeys((script.parent, path.parent)):
                base = folder.joinpath(*name.split("."))
                for found in (base.with_suffix(".py"), base / "__init__.py"):
                    if found.is_file() and found not in seen:
                        seen.add(found)
                        left.append(found)


def _imported(tree: ast.Module) -> list[str]:
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names += [module] if module else []
            names += [f"{module}.{one.name}".lstrip(".") for one in node.names]
    return names


def _aliases(tree: ast.Module) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                if one.asname:
                    found[one.asname] = one.name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for one in node.names:
                found[one.asname or one.name] = f"{node.module}.{one.name}"
    return found


def _blocks(tree: ast.Module) -> Iterable[list[ast.stmt]]:
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield block
