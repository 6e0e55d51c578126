"""Finds the plain training loop in a script: the statements from the model's call to the optimizer's step."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tb_dlprof_plugin.trial.edit import Edit, ScriptSource, SourceFile


@dataclass(frozen=True, slots=True)
class TrainingLoop:
    """A loop with one ``loss.backward()`` and one ``optimizer.step()`` in the same block.

    Attributes:
        file: where it is.
        loop: the innermost loop around the block, and None where the block is a function's.
        body: the block.
        forward: the first statement that calls the model.
        backward: the statement with ``loss.backward()``.
        step: the statement with ``optimizer.step()``.
        loss: source of the loss.
        optimizer: source of the optimizer.
        model: name of the model's variable.
    """

    file: SourceFile
    loop: ast.For | ast.While | None
    body: tuple[ast.stmt, ...]
    forward: ast.stmt
    backward: ast.Expr
    step: ast.stmt
    loss: str
    optimizer: str
    model: str

    @property
    def computes_loss(self) -> tuple[ast.stmt, ...]:
        """From the model's call to the backward pass, without it and what only sets gradients to zero before it."""
        statements = self.body[self.body.index(self.forward) : self.body.index(self.backward)]
        while _method(statements[-1]) == "zero_grad":
            statements = statements[:-1]
        return statements

    def indent(self, statement: ast.stmt) -> str:
        """White space in front of a statement."""
        start = self.file.line_start(statement)
        return self.file.text[start : self.file.start_of(statement)]

    def wrap_forward(self, with_statement: str) -> list[Edit] | None:
        """Indent the computation of the loss below a line such as ``with torch.autocast("cuda"):``; None where it has
        strings of several lines, whose text an indent would change."""
        statements = self.computes_loss
        first, last = statements[0], statements[-1]
        indent = self.indent(first)
        if indent.strip():
            return None
        for node in (inner for statement in statements for inner in ast.walk(statement)):
            text = isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
            if text and isinstance(node, ast.expr) and node.end_lineno != node.lineno:
                return None
        edits = [Edit(self.file.path, at, at, f"{indent}{with_statement}\n") for at in [self.file.line_start(first)]]
        assert last.end_lineno is not None
        for line in range(first.lineno, last.end_lineno + 1):
            at = self.file.starts[line - 1]
            if self.file.text[at : self.file.starts[line]].strip():
                edits.append(Edit(self.file.path, at, at, "    "))
        return edits

    def without(self, function: str) -> list[Edit] | None:
        """Remove the statements of the block that only call ``function``; None where there are none."""
        statements = [
            one
            for one in self.body
            if isinstance(one, ast.Expr)
            and isinstance(one.value, ast.Call)
            and self.file.name_of(one.value.func) == function
        ]
        edits = [edit for one in statements if (edit := self.file.remove(one)) is not None]
        return edits if edits and len(edits) == len(statements) else None

    def before_loop(self, line: str) -> Edit:
        """Insert a line in front of the outermost loop around the block, in the same function."""
        parents = self.file.parents()
        outermost: ast.stmt = self.loop if self.loop is not None else self.body[0]
        node: ast.AST = outermost
        while node in parents and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if isinstance(node, ast.For | ast.While):
                outermost = node
            node = parents[node]
        at = self.file.line_start(outermost)
        return Edit(self.file.path, at, at, f"{self.file.text[at : self.file.start_of(outermost)]}{line}\n")


def find_training_loop(script: ScriptSource) -> TrainingLoop | None:
    """The only one of the script; None where there is none or several."""
    found = [loop for file in script.files for loop in _loops(file)]
    return found[0] if len(found) == 1 else None


def _loops(file: SourceFile) -> Iterator[TrainingLoop]:
    parents = file.parents()
    models = _models(file)
    for node in ast.walk(file.tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        backward = [one for one in body if _method(one) == "backward"]
        steps = [one for one in body if _method(one) == "step"]
        steps = [one for one in steps if not _called_on(file, one).endswith(("scheduler", "sched", "profiler", "prof"))]
        if len(backward) != 1 or not steps or not isinstance(backward[0], ast.Expr):
            continue
        forward = next(
            (
                (one, model)
                for one in body[: body.index(backward[0])]
                for model in models
                if not isinstance(one, ast.For | ast.While | ast.If) and _calls(one, model)
            ),
            None,
        )
        call = backward[0].value
        assert isinstance(call, ast.Call)
        if forward is None or call.args or call.keywords or len({_called_on(file, one) for one in steps}) != 1:
            continue
        loop: ast.AST | None = node
        while loop is not None and not isinstance(loop, ast.For | ast.While):
            loop = None if isinstance(loop, ast.FunctionDef | ast.AsyncFunctionDef) else parents.get(loop)
        yield TrainingLoop(
            file,
            loop,
            tuple(body),
            forward[0],
            backward[0],
            steps[0],
            _called_on(file, backward[0]),
            _called_on(file, steps[0]),
            forward[1],
        )


def _models(file: SourceFile) -> list[str]:
    """Names whose parameters the script passes to an optimizer or the like."""
    names = []
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Attribute) and node.attr in ("parameters", "named_parameters", "train"):
            name = file.source(node.value)
            if isinstance(node.value, ast.Name | ast.Attribute) and name not in names:
                names.append(name)
    return names


def _method(statement: ast.stmt) -> str:
    """The method that a statement of nothing but a call calls; "" for any other."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        return function.attr if isinstance(function, ast.Attribute) else ""
    return ""


def _called_on(file: SourceFile, statement: ast.stmt) -> str:
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Call)
    assert isinstance(statement.value.func, ast.Attribute)
    return file.source(statement.value.func.value)


def _calls(statement: ast.stmt, name: str) -> bool:
    return any(isinstance(node, ast.Call) and ast.unparse(node.func) == name for node in ast.walk(statement))
