"""Changes of live classes, modules and objects that can be undone."""

from __future__ import annotations

import functools
import inspect
import itertools
import types
from collections.abc import Callable
from typing import Any

_MISSING = object()
_NUMBERS = itertools.count()
"""Of replaced functions: several hooks of a process may replace the same one."""


class TrialHooks:
    """Makes the changes of remedies and remembers how to undo them.

    A change of what the script calls must fail as loudly as the script itself would: an exception goes into the
    script, and the remedy counts as one that does not work here.
    """

    def __init__(self) -> None:
        self._undo: list[Callable[[], object]] = []

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute of a module, a class or an object."""
        before = _before(owner, name)
        setattr(owner, name, value)
        if before is _MISSING:
            self._undo.append(lambda: delattr(owner, name))
        else:
            self._undo.append(lambda: setattr(owner, name, before))

    def on_undo(self, undo: Callable[[], object]) -> None:
        """Register a function that takes back a change made by other means."""
        self._undo.append(undo)

    def after_undo(self, undo: Callable[[], object]) -> None:
        """Register a function that is called when all changes have been taken back."""
        self._undo.insert(0, undo)

    def replace(self, owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        """Replace a function of a module or a class by ``make(function)``; its name and signature are kept."""
        original = getattr(owner, name)
        replacement = make(original)
        functools.update_wrapper(replacement, original)
        self.set(owner, name, replacement)

    def replace_everywhere(
        self, function: Callable[..., Any], make: Callable[[Callable[..., Any]], Callable[..., Any]]
    ) -> None:
        """Replace what a function does by ``make(function)``, also for those who hold it already: a script that has
        imported it by name or has passed it on. A function with a closure cannot be changed this way.

        Raises:
            ValueError: the function has a closure.
        """
        assert isinstance(function, types.FunctionType)
        before, defaults, by_keyword = function.__code__, function.__defaults__, function.__kwdefaults__
        name = f"_tb_dlprof_{function.__name__}_{next(_NUMBERS)}"
        original = copy_of(function)
        # The new code looks it up where the function looks up everything else.
        function.__globals__[name] = make(original)
        new = eval(f"lambda *args, **kwargs: {name}(*args, **kwargs)")
        function.__code__ = new.__code__
        function.__defaults__ = function.__kwdefaults__ = None

        def undo() -> None:
            if function.__code__ is not new.__code__:
                # Replaced once more since: that one's original calls this name.
                function.__globals__[name] = original
                return
            function.__code__, function.__defaults__, function.__kwdefaults__ = before, defaults, by_keyword
            del function.__globals__[name]

        self._undo.append(undo)

    def before_init(self, cls: type, change: Callable[[dict[str, Any]], None]) -> None:
        """Call ``change`` with the arguments of each construction of ``cls`` or a subclass of it.

        They are those that the call names, by the names of the constructor's parameters: those with a default are
        not in it. ``change`` may change and add some.
        """
        signature = inspect.signature(cls.__init__)  # type: ignore[misc]

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
                bound = signature.bind(self, *args, **kwargs)
                change(bound.arguments)
                # Not as arguments of the call: `change` may have added one that stands between two positional ones.
                original(**_by_name(signature, bound.arguments))

            return __init__

        self.replace(cls, "__init__", make)

    def after_init(self, cls: type, seen: Callable[[Any], None]) -> None:
        """Call ``seen`` with each object of ``cls`` or a subclass, when the constructor of ``cls`` has ended."""

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
                original(self, *args, **kwargs)
                seen(self)

            return __init__

        self.replace(cls, "__init__", make)

    def wrap_method(self, owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        """Replace a method of one object by ``make(method)``: functions of the object and its arguments.

        A deep copy of the object gets one of its own: the replacement is a method, not a closure over the object.
        """
        bound = getattr(owner, name)
        function = getattr(bound, "__func__", None)
        if function is None or getattr(bound, "__self__", None) is not owner:

            def function(_: Any, *args: Any, **kwargs: Any) -> Any:
                return bound(*args, **kwargs)

            # Such as the mark of what a learning rate scheduler has wrapped.
            vars(function).update(vars(bound))

        replacement = make(function)
        functools.update_wrapper(replacement, function)
        self.set(owner, name, types.MethodType(replacement, owner))

    def undo(self) -> None:
        """Undo all changes, the last first."""
        while self._undo:
            self._undo.pop()()


def copy_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that does what this function of Python does now, whatever replaces it later."""
    assert isinstance(function, types.FunctionType)
    copy = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _before(owner: Any, name: str) -> Any:
    """What is set again to undo a change; `_MISSING` where what is set now has to be deleted, because a class or a base
    class has the attribute."""
    if name in getattr(owner, "__dict__", {}):
        return vars(owner)[name]
    if isinstance(owner, type):
        return _MISSING
    # Torch's switches are descriptors of a module's class (`torch.backends.cudnn.benchmark`), or answered by its
    # __getattr__ (`torch.backends.cuda.matmul.allow_tf32`).
    of_class = inspect.getattr_static(type(owner), name, _MISSING)
    is_switch = of_class is _MISSING or hasattr(type(of_class), "__set__")
    return getattr(owner, name, _MISSING) if is_switch else _MISSING


def _by_name(signature: inspect.Signature, arguments: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments of a call with these bound arguments."""
    keywords: dict[str, Any] = {}
    for name, value in arguments.items():
        kind = signature.parameters[name].kind if name in signature.parameters else None
        if kind is inspect.Parameter.VAR_KEYWORD:
            keywords.update(value)
        else:
            keywords[name] = value
    return keywords
