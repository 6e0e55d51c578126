"""The options of a recording that `profile`, `trace_handler` and ``tb-dlprof run`` share, each with its check."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from typing import Annotated, Any, get_type_hints

from tb_dlprof_plugin.capture import arguments
from tb_dlprof_plugin.capture.process_pool import EXIT_WAIT_S


@dataclass(kw_only=True)
class RecordOptions:
    """The arguments of `trace_handler`, which documents them. A wrong one is left out with a warning."""

    logdir: str | os.PathLike[str] | None
    """None where it is no path: then nothing is recorded."""
    worker_name: Annotated[str | None, arguments.text] = None
    use_gzip: Annotated[bool, arguments.flag] = False
    subdirectory: Annotated[str | None, arguments.path] = None
    model: Any = None
    dataloader: Any = None
    optimizer: Any = None
    batch_size: Annotated[int | None, arguments.count] = None
    run_name: Annotated[str | None, arguments.text] = None
    rank: Annotated[int | None, arguments.count] = None
    session: Annotated[str | None, arguments.text] = None
    keep_trace: Annotated[bool, arguments.flag] = True
    pytorch_views: Annotated[bool | None, arguments.flag] = None
    exit_wait_s: Annotated[float, arguments.seconds] = EXIT_WAIT_S
    use_python_export: Annotated[bool, arguments.flag] = False

    def __post_init__(self) -> None:
        self.logdir = arguments.path_of(self.logdir)
        types = get_type_hints(type(self), include_extras=True)
        for item in dataclasses.fields(self):
            for check in getattr(types[item.name], "__metadata__", ()):
                setattr(self, item.name, check(item.name, getattr(self, item.name), item.default))


NAMES = frozenset(item.name for item in dataclasses.fields(RecordOptions))
