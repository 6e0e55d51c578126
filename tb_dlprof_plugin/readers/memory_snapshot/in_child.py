"""The child process that unpickles a snapshot, which may be anyone's file: within limits of memory and time, with
builtins alone. Returns an `OomSummary` as JSON, or ``{"error": "a sentence's end"}``.

A snapshot is made of dicts, lists, numbers and texts, so that any import in it is refused; but few bytes can ask for
gigabytes, or for hours.
"""

from __future__ import annotations

import contextlib
import pickle
from typing import Any, NoReturn

import msgspec

from tb_dlprof_plugin.readers.memory_snapshot.blocks import NoSnapshot, summary_of


class _Refused(pickle.UnpicklingError):
    pass


class BuiltinsAlone(pickle.Unpickler):
    """Refuses whatever is not made of builtin containers, numbers and texts."""

    def find_class(self, module: str, name: str) -> NoReturn:
        """Raises UnpicklingError, as no snapshot needs a class."""
        raise _Refused(f"it asks for {module[:60]}.{name[:60]}, which no snapshot of torch does, and nothing was run")

    def persistent_load(self, pid: Any) -> NoReturn:
        """Raises UnpicklingError, as no snapshot has objects of outside."""
        raise _Refused("it refers to objects outside of the file, which no snapshot of torch does")


def main(path: str, memory_bytes: int, seconds: int) -> bytes:
    """Limits this process, reads the file and returns what it holds."""
    _limit(memory_bytes, seconds)
    try:
        with open(path, "rb") as file:
            found: object = summary_of(BuiltinsAlone(file).load())
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


def _limit(memory_bytes: int, seconds: int) -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
