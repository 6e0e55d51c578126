"""The child process that unpickles a snapshot, which may be anyone's file: within limits of memory and time, with
builtins alone. Returns an `OomSummary` as JSON, or ``{"error": "a sentence's end"}``.

A snapshot is made of dicts, lists, numbers and texts, so that any import in it is refused; but few bytes can ask for
gigabytes, or for hours.
"""

from __future__ import annotations

import contextlib
import pickle
from typing import Any, BinaryIO, ClassVar, NoReturn

import msgspec

from tb_dlprof_plugin.model.out_of_memory import OomSummary
from tb_dlprof_plugin.readers.memory_snapshot.blocks import STEPS, History, NoSnapshot, summary_of
from tb_dlprof_plugin.readers.memory_snapshot.entries import EntryReader

_Unpickler: Any = pickle._Unpickler  # type: ignore[attr-defined]
"""That of the standard library in Python: the one in C has no place to reduce what it has read."""


class _Refused(pickle.UnpicklingError):
    pass


class BuiltinsAlone(_Unpickler):  # type: ignore[misc]
    """Refuses whatever is not made of builtin containers, numbers and texts.

    Entries of a history are reduced to their time and size as they are read, so that a file of gigabytes needs no
    multiple of that; entries of failed requests are kept.
    """

    dispatch: ClassVar[dict[int, Any]] = dict(_Unpickler.dispatch)

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file)
        self.histories: dict[int, History] = {}
        """By the id of the list that their entries were in."""
        self._count = 0
        self._dicts: dict[int, int] = {}
        self._entries = EntryReader()

    def find_class(self, module: str, name: str) -> NoReturn:
        """Raises UnpicklingError, as no snapshot needs a class."""
        raise _Refused(f"it asks for {module[:60]}.{name[:60]}, which no snapshot of torch does, and nothing was run")

    def persistent_load(self, pid: Any) -> NoReturn:
        """Raises UnpicklingError, as no snapshot has objects of outside."""
        raise _Refused("it refers to objects outside of the file, which no snapshot of torch does")

    def load_memoize(self) -> None:
        """As `pickle` does it, where the memo may lose entries."""
        place, top = self._count, self.stack[-1]
        self._count += 1
        self.memo[place] = top
        if type(top) is dict:
            self._dicts[id(top)] = place
        elif type(top) is str:
            self._entries.memoized(top, place)

    dispatch[pickle.MEMOIZE[0]] = load_memoize

    def load_binget(self) -> None:
        """As `pickle` does it."""
        self._get(self.read(1)[0])

    dispatch[pickle.BINGET[0]] = load_binget

    def load_long_binget(self) -> None:
        """As `pickle` does it."""
        self._get(int.from_bytes(self.read(4), "little"))

    dispatch[pickle.LONG_BINGET[0]] = load_long_binget

    def _get(self, place: int) -> None:
        """What a history that is not kept referred to may be asked for again by an entry that is not kept either."""
        found = self.memo.get(place, self)
        if found is self and place >= self._count:
            raise pickle.UnpicklingError("not in the memo")
        self.append([] if found is self else found)

    def load_setitems(self) -> None:
        """As `pickle` does it; an entry of a history is taken from the stack, and those behind it are not put there."""
        super().load_setitems()
        entry, target = self.stack[-1], self.metastack[-1][-1] if self.metastack and self.metastack[-1] else None
        if type(entry) is not dict or type(target) is not list:
            return
        action = entry.get("action")
        if type(action) is not str or action == "oom":
            return
        history = self.histories.get(id(target))
        if history is None:
            history = self.histories[id(target)] = History()
        if action in STEPS:
            history.add(entry, STEPS[action])
        self.stack.pop()
        # Nothing refers to it again.
        self.memo.pop(self._dicts.pop(id(entry), -1), None)
        self._entries.learn(entry)
        frame = self._unframer.current_frame
        if frame is not None:
            end, places = self._entries.read(frame.getvalue(), frame.tell(), history)
            frame.seek(end)
            self._count += places

    dispatch[pickle.SETITEMS[0]] = load_setitems


def main(path: str, memory_bytes: int, seconds: int) -> bytes:
    """Limits this process, reads the file and returns what it holds."""
    _limit(memory_bytes, seconds)
    try:
        with open(path, "rb") as file:
            found: object = _summary(file)
    except MemoryError:
        found = {"error": f"reading it takes more than {memory_bytes / 2**30:.1f} GiB of memory"}
    except (_Refused, NoSnapshot) as error:
        found = {"error": str(error)}
    except OSError as error:
        found = {"error": error.strerror or "it cannot be read"}
    except Exception:
        # Of a damaged pickle, any may come.
        found = {"error": "it is damaged, or no pickle"}
    return msgspec.json.encode(found)


def _summary(file: BinaryIO) -> OomSummary:
    reader = BuiltinsAlone(file)
    return summary_of(reader.load(), reader.histories)


def _limit(memory_bytes: int, seconds: int) -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
