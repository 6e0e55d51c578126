"""How many planted faults the short tests find: `python tools/mutations.py` in a checkout without changes of its own.

The faults are those of `mutations.json`, which `--choose` makes with a fixed seed. Each replaces one line of the
package; the tests of the folder that has the package's name must fail. The line is put back after them.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "tb_dlprof_plugin"
LIST = Path(__file__).with_name("mutations.json")
PACKAGES = ("analysis", "api", "cli", "comparison", "metrics", "names", "pages", "reports", "simulation", "web")
COUNT, SEED = 60, 31
TIMEOUT_S = 600
OPTIONS = ("-m", "not slow and not long", "-p", "no:cacheprovider")

_SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Add: ast.Sub, ast.Sub: ast.Add,
    ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


def changed(node: ast.AST) -> str | None:
    """The expression with its operator swapped, one more, or without its condition; None if it has nothing of these."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _SWAPPED:
        swapped = _SWAPPED[type(node.ops[0])]()
        return ast.unparse(ast.Compare(node.left, [swapped], node.comparators))  # type: ignore[list-item]
    if isinstance(node, ast.BinOp) and type(node.op) in _SWAPPED:
        return ast.unparse(ast.BinOp(node.left, _SWAPPED[type(node.op)](), node.right))  # type: ignore[arg-type]
    if isinstance(node, ast.BoolOp):
        return ast.unparse(ast.BoolOp(_SWAPPED[type(node.op)](), node.values))  # type: ignore[arg-type]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return ast.unparse(node.operand)
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return str(node.value + 1)
    if isinstance(node, ast.IfExp):
        return ast.unparse(node.body)
    return None


def candidates(path: Path) -> Iterator[dict[str, str]]:
    """Faults of one line each in the functions of a module; only of lines that stand there once."""
    source = path.read_text()
    lines = source.splitlines()
    bodies = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    for statement in (statement for body in bodies for statement in body.body):
        inside_texts = {
            id(inner) for node in ast.walk(statement) if isinstance(node, ast.JoinedStr) for inner in ast.walk(node)
        }
        for node in ast.walk(statement):
            replacement = None if id(node) in inside_texts else changed(node)
            if replacement is None or node.lineno != node.end_lineno:  # type: ignore[attr-defined]
                continue
            line = lines[node.lineno - 1]  # type: ignore[attr-defined]
            encoded = line.encode()
            start, stop = node.col_offset, node.end_col_offset  # type: ignore[attr-defined]
            after = (encoded[:start] + f"({replacement})".encode() + encoded[stop:]).decode()
            if lines.count(line) == 1:
                yield {"file": path.relative_to(ROOT).as_posix(), "before": line, "after": after}


def choose() -> list[dict[str, str]]:
    """The same number of each package, at most one of a module."""
    source = random.Random(SEED)
    chosen: list[dict[str, str]] = []
    for package in PACKAGES:
        modules = sorted((PACKAGE / package).rglob("*.py"))
        source.shuffle(modules)
        of_modules = [found for module in modules if (found := list(candidates(module)))]
        chosen += [source.choice(found) for found in of_modules[: COUNT // len(PACKAGES)]]
    return chosen


def outcome(fault: dict[str, str]) -> str:
    """Whether a test fails with the fault: found, missed, timed out, or gone if its line is no longer there."""
    path = ROOT / fault["file"]
    whole = path.read_text()
    if whole.splitlines().count(fault["before"]) != 1:
        return "gone"
    tests = ROOT / "tests" / Path(fault["file"]).parts[1]
    path.write_text(whole.replace(f"{fault['before']}\n", f"{fault['after']}\n", 1))
    try:
        command = [sys.executable, "-m", "pytest", str(tests), "-x", "-q", *OPTIONS]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=TIMEOUT_S, check=False)
        return "found" if done.returncode else "missed"
    except subprocess.TimeoutExpired:
        return "timed out"
    finally:
        path.write_text(whole)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--choose", action="store_true", help="make the list again")
    parser.add_argument("--only", default="", help="packages, with commas between them")
    options = parser.parse_args()
    if options.choose:
        LIST.write_text(json.dumps(choose(), indent=1) + "\n")
        return 0
    wanted = options.only.split(",") if options.only else PACKAGES
    faults = [fault for fault in json.loads(LIST.read_text()) if Path(fault["file"]).parts[1] in wanted]
    outcomes: Counter[str] = Counter()
    for number, fault in enumerate(faults, 1):
        begun = time.monotonic()
        what = outcome(fault)
        outcomes[what] += 1
        seconds = time.monotonic() - begun
        print(f"{number:2} {what:9} {seconds:4.0f} s {fault['file']}: {fault['after'].strip()}", flush=True)
    print(f"{outcomes['found']} of {len(faults)} found; {dict(outcomes)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
