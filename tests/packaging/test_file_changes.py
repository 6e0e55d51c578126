"""SECURITY.md lists every place of the package that writes, renames or removes a file, and there is no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "tb_dlprof_plugin"
SECTION = "What is written and removed"

METHODS = {
    "unlink", "rmdir", "removedirs", "rmtree", "rename", "renames", "symlink", "symlink_to", "link", "hardlink_to",
    "truncate", "ftruncate", "touch", "mkdir", "makedirs", "mkfifo", "mknod", "chmod", "fchmod", "lchmod", "chown",
    "fchown", "lchown", "utime", "setxattr", "removexattr", "write_text", "write_bytes", "copyfile", "copytree",
    "copy2", "copymode", "copystat", "mkdtemp", "mkstemp", "TemporaryDirectory", "NamedTemporaryFile", "TemporaryFile",
    "SpooledTemporaryFile", "export_chrome_trace", "export_stacks", "export_memory_timeline", "savez",
    "savez_compressed", "savetxt", "tofile", "memmap", "pipe_file", "rm_file", "extractall",
}  # fmt: skip
"""Names of functions and methods that change a file system, of any module or class."""
OF_MODULES = {
    "os": {"remove", "replace"}, "shutil": {"move", "copy", "make_archive", "unpack_archive"}, "torch": {"save"},
    "numpy": {"save"}, "np": {"save"}, "addresses": {"write", "remove"},
}  # fmt: skip
"""The same, where others have harmless methods of the name."""
OF_FILE_SYSTEMS = {"mv", "rm", "put", "put_file", "makedirs"}
"""Methods of fsspec's file systems."""
DOORS = {"whole_file", "remove_all", "remove", "remove_job_folder"}
"""Functions of ours that change what they are called with."""
NOT_FILES = {
    "capture/launcher/recorder.py: Recorder._prepare", "capture/launcher/recording.py: Ranges.open",
    "capture/launcher/xplane/call_recorder.py: CallRecorder._start", "capture/loader/meter.py: _begin",
    "capture/modules.py: _ModuleRange.before", "notebook.py: _ask",
}  # fmt: skip
"""Where a method of such a name is none of a file."""
FLAGS = {"O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND", "O_TMPFILE"}


def changes_in(source: str) -> Iterator[tuple[str, str]]:
    """The function, and what in it changes files: calls, and functions that are passed on."""
    yield from _walk(ast.parse(source), "")


def _walk(node: ast.AST, inside: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        inside = f"{inside}.{node.name}" if inside else node.name
    what = _change(node)
    if what:
        yield inside, what
    for child in ast.iter_child_nodes(node):
        yield from _walk(child, inside)


def _change(node: ast.AST) -> str | None:
    if isinstance(node, ast.ImportFrom):
        taken = {one.name for one in node.names} & (METHODS | OF_MODULES.get(node.module or "", set()))
        # Functions of our own have such names, too.
        return f"from {node.module}" if taken and node.module in ("os", "shutil", "tempfile", "pathlib") else None
    if isinstance(node, ast.Attribute):
        owner = ast.unparse(node.value)
        if node.attr in METHODS | FLAGS or node.attr in OF_MODULES.get(owner, ()):
            return node.attr
        return node.attr if node.attr in OF_FILE_SYSTEMS and owner == "files" else None
    if isinstance(node, ast.Constant):
        # getattr(os, "unlink")
        return f"the name {node.value}" if node.value in METHODS - {"link", "touch", "truncate", "rename"} else None
    return _opening(node) if isinstance(node, ast.Call) else None


def _opening(call: ast.Call) -> str | None:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    owner = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    if not owner and name in DOORS:
        return name
    if name == "replace" and len(call.args) == 1 and not call.keywords and owner != "os":
        return "Path.replace"
    if name not in ("open", "fdopen", "GzipFile", "BZ2File", "LZMAFile", "ZipFile", "FileIO") or owner == "os":
        return None
    # open(path, mode), gzip.open(path, mode), path.open(mode)
    of_path = isinstance(call.func, ast.Attribute) and owner not in ("gzip", "bz2", "lzma", "io", "zipfile", "codecs")
    modes = [keyword.value for keyword in call.keywords if keyword.arg == "mode"]
    modes += call.args[:1] if of_path else call.args[1:2]
    return next((f"{name} {ast.unparse(mode)}" for mode in modes if not _reads(mode)), None)


def _reads(mode: ast.expr) -> bool:
    if isinstance(mode, ast.Constant):
        return isinstance(mode.value, str) and not set(mode.value) & set("wax+")
    return False


def found() -> dict[str, set[str]]:
    places: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for function, what in changes_in(path.read_text()):
            places.setdefault(f"{path.relative_to(PACKAGE).as_posix()}: {function}", set()).add(what)
    assert set(places) >= NOT_FILES
    return {place: whats for place, whats in places.items() if place not in NOT_FILES}


def listed() -> list[str]:
    """As ``module: function``; a module alone is one that only changes files."""
    section = (ROOT / "SECURITY.md").read_text().partition(f"## {SECTION}\n")[2].partition("\n## ")[0]
    table = "\n".join(line for line in section.splitlines() if line.startswith("|"))
    return re.findall(r"`([\w/]+\.py(?:: [\w.]+)?)`", table)


def test_every_place_that_changes_files_is_in_the_table_and_no_other_is() -> None:
    places = found()
    names = listed()
    assert len(names) == len(set(names))
    known = {place: place if place in names else place.partition(":")[0] for place in places}
    assert {place: places[place] for place, name in known.items() if name not in names} == {}
    assert sorted(set(names) - set(known.values())) == []


@pytest.mark.parametrize(
    "line",
    [
        "os.unlink(p)", "p.unlink()", "shutil.rmtree(p)", "atexit.register(shutil.rmtree, p)", "from os import unlink",
        "getattr(os, 'rmtree')(p)", "open(p, 'w')", "open(p, mode='ab')", "open(p, mode)", "p.open('x')",
        "p.open(mode=m)",
        "gzip.open(p, 'wb')", "os.open(p, os.O_WRONLY | os.O_CREAT)", "os.replace(a, b)", "a.replace(b)", "p.rename(q)",
        "p.write_text('')", "tempfile.mkdtemp()", "files.rm(p)", "files.mv(p, q)", "np.save(p, a)", "torch.save(a, p)",
        "prof.export_chrome_trace(p)", "os.chmod(p, 0)", "shutil.move(a, b)", "os.remove(p)",
        "whole_file(p)", "addresses.remove(a)", "remove(p)",
    ],
)  # fmt: skip
def test_a_change_is_found_however_it_is_written(line: str) -> None:
    assert [function for function, _ in changes_in(f"class A:\n    def f(self):\n        {line}\n")][:1] == ["A.f"]


@pytest.mark.parametrize(
    "line",
    [
        "open(p)", "open(p, 'rb')", "p.open()", "p.open(encoding='utf-8')", "gzip.open(p)", "os.open(p, os.O_RDONLY)",
        "'a'.replace('b', 'c')", "replace(profile, rank=1)", "names.remove(x)", "rows.copy()", "hook.remove()",
    ],
)  # fmt: skip
def test_what_only_reads_is_not_found(line: str) -> None:
    assert list(changes_in(f"def f():\n    {line}\n")) == []
