"""``tb-dlprof pytorch-views``: rewrites traces of today's torch so that the PyTorch Profiler tab can read them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tb_dlprof_plugin.cli.progress import Progress
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.cli.trace_files import trace_files
from tb_dlprof_plugin.interop.torch_tb_profiler.in_place import has_copy, replace_by_copy, write_copy
from tb_dlprof_plugin.readers.errors import TraceError


def pytorch_views(
    traces: Annotated[
        list[Path],
        typer.Argument(help="Trace files of torch.profiler, or directories of *.pt.trace.json[.gz] files."),
    ],
    to: Annotated[
        Path | None, typer.Option(help="Write the copies to this directory and keep the traces in place.")
    ] = None,
) -> None:
    """Write traces that the PyTorch Profiler tab can read.

    The tab, torch-tb-profiler 0.4.3, reads no device times from traces of today's torch, and counts wrong steps. The
    copy replaces the trace; the trace itself, for Perfetto and HTA, is moved to the directory "kineto" next to it.
    Restart TensorBoard afterwards: the tab reads a directory once.
    """
    try:
        files = [file for file in trace_files(traces) if to is not None or not has_copy(file)]
    except FileNotFoundError as error:
        _tell(f"{error.filename} holds no *.pt.trace.json[.gz] file; name the trace files themselves.")
        raise typer.Exit(2) from None
    if not files:
        say("Every trace has its copy already.")
    failed = False
    for file in files:
        try:
            with Progress(file) as progress:
                if to is None:
                    copy, original = replace_by_copy(file, progress.update)
                else:
                    copy, original = write_copy(file, to, progress=progress.update), file
        except (TraceError, OSError) as error:
            _tell(str(error) if isinstance(error, TraceError) else f"{error.filename}: {error.strerror}.")
            failed = True
            continue
        size, of = copy.stat().st_size, original.stat().st_size
        say(f"{copy} ({size / 1e6:.1f} MB) of {original} ({of / 1e6:.1f} MB)")
    if failed:
        raise typer.Exit(2)


def _tell(sentence: str) -> None:
    say(f"tb-dlprof: {sentence}", err=True)
