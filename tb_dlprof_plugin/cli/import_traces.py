"""``tb-dlprof import``: converts recordings of any known format to runs that TensorBoard shows."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from tb_dlprof_plugin.analysis import analyze_ranks, analyze_trace
from tb_dlprof_plugin.analysis.compiled_kernels import stored_graphs
from tb_dlprof_plugin.cli.errors import refuse
from tb_dlprof_plugin.cli.import_job import ImportOptions, import_a_job, is_job
from tb_dlprof_plugin.cli.options import OutputFormat, Printing
from tb_dlprof_plugin.cli.progress import Progress
from tb_dlprof_plugin.cli.request_options import takes_requests
from tb_dlprof_plugin.cli.terminal import say
from tb_dlprof_plugin.cli.trace_files import folder_summary, known_in, trace_files
from tb_dlprof_plugin.fleet.run_writer import write_runs
from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.model.run_facts import RunFacts, System
from tb_dlprof_plugin.model.struct_from import struct_from
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.readers.kineto import trace_format as kineto
from tb_dlprof_plugin.readers.nsys import trace_format as nsys
from tb_dlprof_plugin.readers.options import ReadOptions
from tb_dlprof_plugin.readers.registry import FORMATS, format_of, recording_of
from tb_dlprof_plugin.readers.tensorrt import trace_format as tensorrt
from tb_dlprof_plugin.readers.trace_names import run_folder, stem_of
from tb_dlprof_plugin.store.codec import ProfileError
from tb_dlprof_plugin.store.run_folder import RunFolder, RunFolderError

_LONGEST_MODEL = 200


class ImportedProfile(msgspec.Struct, frozen=True):
    """A written profile: its trace, its event file and its run; ``format`` as `Source` names it."""

    run: str
    format: str
    framework: str
    trace_file: str
    event_file: str
    session: str
    rank: int
    cycle: int
    iterations: int


class Imported(msgspec.Struct, frozen=True):
    """Every profile that was written, in that order."""

    profiles: list[ImportedProfile]


@takes_requests
def import_traces(
    traces: Annotated[
        list[Path],
        typer.Argument(
            help="Recordings of any known format, or directories of them. Of a job: also patterns in quotes, as "
            "'traces/*/rank*.json.gz', and addresses, as 's3://bucket/job/*.json.gz'."
        ),
    ],
    options: ImportOptions,
) -> None:
    """Convert existing recordings to runs.

    Of PyTorch, TensorFlow, Keras, JAX, TensorRT and ONNX Runtime, from any version and machine. Facts of the training
    process (autocast, TF32 switches, DataLoader settings) are then unknown, unless --facts-from names an event file
    with them. Counters of Nsight Compute (a .ncu-rep, or the text of ncu --csv --page raw) are added to --run.
    A folder of TORCH_TRACE (--torch-trace) explains what each kernel of torch.compile computes, in CUDA graphs, too.
    JSON of trtexec and an Nsight Systems database of the same engine, imported as one --run, are joined by layer.

    Recordings of a job's ranks become one run for each folder. They are read in processes of this machine or on a Dask
    cluster (--engine dask), from any file system that fsspec knows to any; a second import does what is missing.
    """
    if is_job(traces, options):
        import_a_job(traces, options)
        return
    counters = [path for path in traces if _holds_counters(path)]
    if counters and options.run is None:
        refuse(f"{counters[0]} holds counters of Nsight Compute, which belong to a run; name it with --run")
    traces = [path for path in traces if path not in counters]
    files = _files(traces) if traces else []
    plan_of_engine, files = _engine(files, options.run)
    known, model = _known(options.facts_from), _model(options.model)
    reading = _Reading(known, options.rank, ReadOptions(options.markers, plan_of_engine, options.torch_trace), model)
    failed, written = _import_files(files, options, reading)
    if counters and options.run is not None and not failed:
        written = _add_counters(options.logdir, options.run, counters, options.output)
    if not options.output.is_text:
        from tb_dlprof_plugin.cli.printing import print_page

        print_page(Imported(written), Printing(output=options.output))
    elif any(path.is_dir() for path in traces):
        for line in folder_summary(traces, files, [profile.format for profile in written], reading.failures):
            say(line, err=True)
    if failed:
        raise typer.Exit(2)


def import_quietly(recording: Path, logdir: Path) -> None:
    """Writes the runs of a recording, or of all those below a directory, and prints only what cannot be read.

    Ends the command where there is none.
    """
    options = ImportOptions(logdir=logdir, output=OutputFormat.json)
    _, written = _import_files(_files([recording]), options, _Reading(None, None, ReadOptions(), None))
    if not written:
        raise typer.Exit(2)


def _import_files(files: list[Path], options: ImportOptions, reading: _Reading) -> tuple[bool, list[ImportedProfile]]:
    """Whether a run failed, and the profiles that were written."""
    groups = {options.run: files} if options.run is not None else _grouped(files, options.logdir.resolve())
    failed, written = False, []
    for name, members in groups.items() if files else ():
        whole, profiles = False, list[tuple[Path, Profile]]()
        try:
            whole, profiles = _make_run(
                RunFolder.named(options.logdir, name), members, reading, options.force, options.pytorch_views
            )
        except RunFolderError as error:
            _tell(f"{error}.")
        except OSError as error:
            _tell(f"{options.logdir / name} cannot be written ({error.strerror}); give another --logdir.")
        failed |= not whole
        for path, profile in profiles:
            written.append(_imported(name, path, profile))
            if options.output.is_text:
                say(f"{profile.source.trace_file} -> {path}")
    return failed, written


def _add_counters(logdir: Path, run: str, files: list[Path], output: OutputFormat) -> list[ImportedProfile]:
    """The profiles of the run, with the counters."""
    from tb_dlprof_plugin.cli.import_counters import add_counters

    try:
        joined = add_counters(RunFolder.named(logdir, run), files)
    except (TraceError, ProfileError, RunFolderError, OSError) as error:
        refuse(str(error).rstrip("."))
    for one in joined:
        if output.is_text:
            said = f"counters for {one.launches} of its launches, {one.percent:.0f} % of the kernel time"
            say(f"rank {one.profile.source.rank} -> {one.path}: {said}")
    return [_imported(run, one.path, one.profile) for one in joined]


@dataclass(frozen=True, slots=True)
class _Reading:
    """How recordings are read, and the sentences about those that could not be."""

    known: Profile | None
    rank: int | None
    options: ReadOptions
    model: str | None
    failures: dict[Path, str] = field(default_factory=dict)


def _make_run(
    run: RunFolder, traces: list[Path], reading: _Reading, force: bool, pytorch_views: bool
) -> tuple[bool, list[tuple[Path, Profile]]]:
    """Writes the profiles of one run; False if any trace failed, which does not affect the others.

    The profiles that were written follow, each with its event file.

    Raises:
        RunFolderError: the run is not to be replaced, or another command writes it.
        OSError: the run cannot be written.
    """
    folder = run.path
    if not force:
        run.check_free("another --run", with_traces=False)
    before = run.event_files()
    profiles, whole = [], True
    for trace in traces:
        try:
            with Progress(trace) as progress:
                profiles += [_of_model(one, reading.model) for one in _analyzed(trace, reading, progress)]
            if pytorch_views and profiles[-1].source.format == kineto.NAME:
                from tb_dlprof_plugin.interop.torch_tb_profiler.file_names import copy_name
                from tb_dlprof_plugin.interop.torch_tb_profiler.trace_copy import write_tab_copy

                run.check_no_link()
                folder.mkdir(parents=True, exist_ok=True)
                write_tab_copy(profiles[-1], trace, folder / copy_name(stem_of(trace.name)))
        except FileExistsError as error:
            _tell(f"{error.filename} {error.strerror}.")
            return False, []
        except TraceError as error:
            _tell(str(error))
            reading.failures[trace] = str(error)
            whole = False
    if before and not whole:
        _tell(f"{folder} was left as it is.")
        return False, []
    if not profiles:
        return whole, []
    profiles = _as_cycles(profiles, reading.known)
    with run.locked():
        if not force:
            run.check_free("another --run", with_traces=False)
        paths, removed = run.replace(lambda: write_runs(folder, profiles), run.event_files())
    if removed:
        _tell(f"{folder} was replaced; removed: {', '.join(removed)}.")
    return whole, list(zip(paths, profiles, strict=True))


def _imported(run: str, path: Path, profile: Profile) -> ImportedProfile:
    iterations = len(profile.iterations) if profile.iterations.found_by != "none" else 0
    return struct_from(ImportedProfile, profile.source, run=run, event_file=str(path), iterations=iterations)


def _analyzed(trace: Path, reading: _Reading, progress: Progress) -> list[Profile]:
    """The profiles of a recording: of all its ranks, unless one is named."""
    known, rank, options = reading.known, reading.rank, reading.options
    if known is None and rank is None:
        session = _session(_run_name(trace))
        return analyze_ranks(trace, session=session, options=options, progress=progress.update)
    if known is None:
        facts, system, session, worker = RunFacts(), System(), stem_of(trace.name), ""
    else:
        made_by = known.source
        facts, system, session, worker = known.facts, known.system, made_by.session, made_by.worker
        rank = made_by.rank if rank is None else rank
    return [
        analyze_trace(
            trace,
            facts=facts,
            system=system,
            session=_session(session),
            rank=rank,
            worker=worker,
            options=options,
            progress=progress.update,
            compiled_graphs=() if known is None else stored_graphs(known),
        )
    ]


def _model(name: str | None) -> str | None:
    if name is not None and not (name := name.strip()[:_LONGEST_MODEL]):
        refuse("--model is empty; give the model's name, or leave it off")
    return name


def _of_model(profile: Profile, name: str | None) -> Profile:
    return profile if name is None else replace(profile, facts=msgspec.structs.replace(profile.facts, model=name))


def _session(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "-", name) or "trace"


def _as_cycles(profiles: list[Profile], known: Profile | None) -> list[Profile]:
    """The traces of one run as one session: each rank's in order of time are its cycles."""
    cycles: dict[int, int] = {}
    result = []
    for profile in sorted(profiles, key=lambda p: (p.source.rank, p.base_time_unix_ns)):
        source = profile.source
        first = known.source.cycle if known else 0
        cycle = cycles[source.rank] = cycles.get(source.rank, first - 1) + 1
        session = profiles[0].source.session
        result.append(replace(profile, source=replace(source, session=session, cycle=cycle)))
    return result


def _files(traces: list[Path]) -> list[Path]:
    try:
        return list(dict.fromkeys(map(recording_of, trace_files(traces))))
    except FileNotFoundError as error:
        known = known_in(Path(error.filename))
        if known:
            refuse(f"{error.filename} holds no recording that can be read, but {known}")
        titles = "; ".join(one.TITLE for one in FORMATS)
        refuse(f"{error.filename} holds no recording that can be read ({titles}); name the files themselves")


def _engine(files: list[Path], run: str | None) -> tuple[Path | None, list[Path]]:
    """trtexec's file of the engine that ran in the recordings of Nsight Systems, where both become one run, and
    the recordings that are left."""
    if run is None:
        return None, files
    formats = {file: _format_name(file) for file in files}
    engines = [file for file in files if formats[file] == tensorrt.NAME]
    recordings = [file for file in files if formats[file] == nsys.NAME]
    if len(engines) != 1 or not recordings:
        return None, files
    return engines[0], [file for file in files if file not in engines]


def _format_name(file: Path) -> str:
    try:
        return format_of(file).NAME
    except TraceError:
        return ""


def _grouped(files: list[Path], logdir: Path) -> dict[str, list[Path]]:
    """The files of each run by its name, after its directory's where runs of several directories have one name."""
    runs: dict[tuple[str, Path], list[Path]] = {}
    for file in files:
        runs.setdefault((_run_name(file), run_folder(file.resolve().parent)), []).append(file)
    return {_distinct(name, folder, list(runs), logdir): members for (name, folder), members in runs.items()}


def _distinct(name: str, folder: Path, runs: list[tuple[str, Path]], logdir: Path) -> str:
    """A run's name, after that of the nearest directory above it by which it differs from others of the same name."""
    others = [other for same, other in runs if same == name and other != folder]
    if not others:
        return name
    for above in (folder, *folder.parents):
        depth = len(folder.parts) - len(above.parts)
        if above.name and all(
            [one.name for one in (other, *other.parents)][depth:][:1] != [above.name] for other in others
        ):
            # Below the log directory itself there is nothing to tell apart by.
            return name if above == logdir else f"{above.name}/{name}"
    return f"{folder.name}/{name}"


def _run_name(file: Path) -> str:
    try:
        name = format_of(file).run_name(file)
    except TraceError:
        name = stem_of(file.name)  # It is refused when it is read, which costs no other run.
    # Dots alone, as of "...pt.trace.json.gz", would be the log directory or the one above it.
    return name if name.strip(".") else file.name


def _holds_counters(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        format_of(path)
    except TraceError:
        from tb_dlprof_plugin.readers.ncu.counters_file import recognises

        return recognises(path)
    return False


def _known(event_file: Path | None) -> Profile | None:
    if event_file is None:
        return None
    from tb_dlprof_plugin.store.logdir import read_profiles

    try:
        stored = read_profiles(event_file)
    except ProfileError as error:
        refuse(error)
    if not stored:
        refuse(f"{event_file} holds no profile; name an event file of tb_dlprof_plugin")
    return stored[0].profile


def _tell(sentence: str) -> None:
    say(f"tb-dlprof: {sentence}", err=True)
