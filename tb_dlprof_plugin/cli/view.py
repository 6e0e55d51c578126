"""``tb-dlprof view``: the pages in the browser, from a server of this process, without TensorBoard."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import webbrowser
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.store.codec import ProfileError
from tb_dlprof_plugin.store.event_file import event_files
from tb_dlprof_plugin.store.logdir import no_such_path
from tb_dlprof_plugin.store.remote_copies import path_here
from tb_dlprof_plugin.web.server import DEFAULT_PORT, LOCALHOST, address_of, app_of, bound


def view(
    source: Annotated[
        Path,
        typer.Argument(help="A log directory, a run's directory, an event file, or recordings that `import` takes."),
    ],
    host: Annotated[str, typer.Option(help="Where to listen; 0.0.0.0 lets other machines in, which see all.")] = (
        LOCALHOST
    ),
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65_535,
            help=f"Port, 0 for any free one; by default {DEFAULT_PORT} or the next that is free.",
            show_default=False,
        ),
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address, and open no browser.")] = False,
) -> None:
    """Open the pages in the browser, without TensorBoard.

    They are those of the DLProf tab, and follow new runs. Recordings become runs in a temporary directory, which is
    removed at the end. Ctrl-C ends the command.
    """
    # What is temporary goes, however the command is ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ExitStack() as stack:
        logdir, only = _shown(source, stack)
        try:
            server = bound(app_of(logdir, host, only), host, port)
        except OSError as error:
            where = host if port is None else f"{host}, port {port},"
            refuse(f"{where} cannot be listened on ({error.strerror}); give another --host or --port")
        address = address_of(server, host)
        say(f"tb-dlprof: {source} is shown at {address} (Ctrl-C ends this)")
        if not no_browser and _has_screen():
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        server.serve_forever()


def _shown(source: Path, stack: ExitStack) -> tuple[Path, Path | None]:
    """The log directory, and the event file in it where one is named; ends the command where there is neither."""
    try:
        here = path_here(source)
    except ProfileError as error:
        refuse(error)
    if not here.exists():
        refuse(no_such_path(here))
    if here.is_file() and "tfevents" in here.name:
        return here.parent, here
    if here.is_dir() and (event_files(here) or not _recordings(here)):
        return here, None
    from tb_dlprof_plugin.cli.import_traces import import_quietly

    runs = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tb-dlprof-view-")))
    import_quietly(here, runs)
    return runs, None


def _recordings(directory: Path) -> list[Path]:
    # A log directory waits for no reader.
    from tb_dlprof_plugin.readers.registry import files_below

    return files_below(directory)


def _has_screen() -> bool:
    """Whether a browser would have a window: one for terminals would take this one."""
    return sys.platform != "linux" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")))
