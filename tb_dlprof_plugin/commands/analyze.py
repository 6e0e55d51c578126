"""``tb-dlprof analyze``: trace files in, event files out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.storage.codec import ProfileError
from tb_dlprof_plugin.storage.eventfile import read_profiles, write_profile
from tb_dlprof_plugin.storage.model import Profile
from tb_dlprof_plugin.trace.errors import TraceError


def analyze(
    traces: Annotated[list[Path], typer.Argument(help="*.pt.trace.json[.gz] files that torch.profiler wrote.")],
    logdir: Annotated[
        Path | None, typer.Option(help="Run directory for the event files; next to each trace by default.")
    ] = None,
    rank: Annotated[int | None, typer.Option(help="Rank; the trace's own by default.")] = None,
    facts_from: Annotated[
        Path | None,
        typer.Option(help="Event file of the same run: keeps what the hook read, to analyse with a newer version."),
    ] = None,
) -> None:
    """Analyse trace files and write the event files that TensorBoard shows.

    What only the training process knows (autocast, TF32 switches, DataLoader settings) is then unknown, unless
    --facts-from names an event file that holds it.
    """
    known = _known(facts_from)
    failed = False
    for cycle, trace in enumerate(traces):
        target = logdir or trace.parent
        # One session per trace where each goes to a place of its own; cycles of one session where they share it.
        session = _session(traces[0] if logdir else trace)
        try:
            if known is None:
                profile = analyze_trace(trace, session=session, rank=rank, cycle=cycle if logdir else 0)
            else:
                before = known.source
                profile = analyze_trace(
                    trace,
                    facts=known.facts,
                    system=known.system,
                    session=before.session,
                    rank=before.rank if rank is None else rank,
                    cycle=before.cycle + cycle,
                    worker=before.worker,
                )
            path = write_profile(target, profile)
        except TraceError as error:
            typer.echo(f"tb-dlprof: {error}", err=True)
            failed = True
        except OSError as error:
            typer.echo(f"tb-dlprof: {target} cannot be written ({error.strerror}); give another --logdir.", err=True)
            failed = True
        else:
            typer.echo(f"{trace} -> {path}")
    if failed:
        raise typer.Exit(2)


def _known(event_file: Path | None) -> Profile | None:
    if event_file is None:
        return None
    try:
        stored = read_profiles(event_file)
    except ProfileError as error:
        typer.echo(f"tb-dlprof: {error}", err=True)
        raise typer.Exit(2) from None
    if not stored:
        typer.echo(f"tb-dlprof: {event_file} holds no profile; name an event file of tb_dlprof_plugin.", err=True)
        raise typer.Exit(2)
    return stored[0].profile


def _session(trace: Path) -> str:
    """A tag's session from a trace's name."""
    return re.sub(r"[^A-Za-z0-9_.-]", "-", trace.name.split(".pt.trace", 1)[0]) or "trace"
