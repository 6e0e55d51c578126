"""``tb-dlprof pytorch-views``: rewrites traces of today's torch so that the PyTorch Profiler tab can read them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.cli.progress import Progress
from tb_dlprof_plugin.cli.trace_files import trace_files
from tb_dlprof_plugin.interop.torch_tb_profiler.trace_copy import write_tab_copy
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.trace_names import ORIGINALS, copy_name, is_copy, original_name, stem_of


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
        files = [file for file in trace_files(traces) if to is not None or not _has_copy(file)]
    except FileNotFoundError as error:
        _tell(f"{error.filename} holds no *.pt.trace.json[.gz] file; name the trace files themselves.")
        raise typer.Exit(2) from None
    if not files:
        typer.echo("Every trace has its copy already.")
    failed = False
    for file in files:
        try:
            copy, original = _in_place(file) if to is None else (_written(file, to), file)
        except (TraceError, OSError) as error:
            _tell(str(error) if isinstance(error, TraceError) else f"{error.filename}: {error.strerror}.")
            failed = True
            continue
        size, of = copy.stat().st_size, original.stat().st_size
        typer.echo(f"{copy} ({size / 1e6:.1f} MB) of {original} ({of / 1e6:.1f} MB)")
    if failed:
        raise typer.Exit(2)


def _has_copy(file: Path) -> bool:
    return file.parent.name == ORIGINALS and is_copy(file.parent.parent / copy_name(stem_of(file.name)))


def _in_place(file: Path) -> tuple[Path, Path]:
    """Moves the trace and writes the copy; restores the trace if that fails."""
    run = file.parent.parent if file.parent.name == ORIGINALS else file.parent
    name = original_name(stem_of(file.name), packed=file.suffix == ".gz")
    original = run / name
    if original != file:
        if original.exists():
            raise FileExistsError(17, "exists already; move it away", str(original))
        original.parent.mkdir(exist_ok=True)
        os.rename(file, original)
    try:
        return _written(original, run, name), original
    except BaseException:
        if original != file:
            os.rename(original, file)
        raise


def _written(trace: Path, folder: Path, original: str = "") -> Path:
    with Progress(trace) as progress:
        # Analysed, then written: each reads the trace once.
        profile = analyze_trace(trace, progress=lambda part: progress.update(part / 2))
        folder.mkdir(parents=True, exist_ok=True)
        copy = folder / copy_name(stem_of(trace.name))
        write_tab_copy(profile, trace, copy, original, progress=lambda part: progress.update(0.5 + part / 2))
    return copy


def _tell(sentence: str) -> None:
    typer.echo(f"tb-dlprof: {sentence}", err=True)
