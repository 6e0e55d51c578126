"""A repository in; its recorded runs and traces out, in parts that are asked about together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

LOGDIRS = (
    "demo/recorded",
    "tests/data/precision_pairs",
    "tests/data/planted",
    "tests/data/planted_larger",
)
TRACES = ("tests/traces", "tests/metrics/recorded", "tests/readers/corpus")

QUICK_RUNS = {
    "demo/recorded/lenet": ("fp32", "amp-fp16"),  # a light window; an AMP pair
    "demo/recorded/custom": ("fp32", "amp-bf16"),  # no light window
    "tests/data/precision_pairs/transformers/distilbert": ("fp32", "amp-bf16"),
    "tests/data/precision_pairs/torchvision/resnet18": ("fp32", "compile-amp-bf16"),
    "tests/data/planted/data_parallel": ("fault", "fixed"),  # two ranks, and one
    "tests/data/planted/optimizer_state": ("fault",),  # with memory
}
"""Runs that show each kind of recording once. All stored runs have the first schema of event files."""
DEEP = (
    "demo/recorded/lenet",
    "demo/recorded/custom",
    "tests/data/planted/data_parallel",
    "tests/data/planted/optimizer_state",
)
"""Directories of which every question is asked, each in every format: about ten seconds for a run."""
QUICK_TRACES = (
    "tests/traces/cpu_training.pt.trace.json.gz",  # CPU only
    "tests/traces/hook_amp_bf16.pt.trace.json.gz",
    "tests/traces/torch_1_9_cpu_memory.pt.trace.json.gz",  # an old torch, with memory
    "tests/traces/nccl_rank0.pt.trace.json.gz",
    "tests/traces/nccl_rank1.pt.trace.json.gz",
    "tests/readers/corpus/truncated_in_an_event.json",
)
RANKS = (
    ("tests/traces/nccl_rank0.pt.trace.json.gz", "tests/traces/nccl_rank1.pt.trace.json.gz"),
    ("tests/traces/cpu_gloo_rank0.pt.trace.json.gz", "tests/traces/cpu_gloo_rank1.pt.trace.json.gz"),
)
"""Traces of ranks of one training, which are imported into one run."""
_ENDINGS = (".json", ".json.gz")
_NO_TRACES = (".key_averages.json.gz", "resnet18_memory_h200.json")


@dataclass(frozen=True, slots=True)
class Part:
    """Runs of one directory, or traces.

    Attributes:
        subject: what the keys call it: its path in the repository, or below the directory that was named.
        place: the directory of the runs, or that of the traces.
        names: names of run directories or trace files in it.
        traces: whether they are traces.
        deep: whether every question is asked, those too that compute a run's advice anew.
        together: whether only what is about all of them is asked, or, of traces, they become one run.
    """

    subject: str
    place: Path
    names: tuple[str, ...]
    traces: bool = False
    deep: bool = False
    together: bool = False

    @property
    def size(self) -> int:
        """Bytes, from which follows roughly how long it takes."""
        return sum(
            file.stat().st_size
            for name in self.names
            for file in ([self.place / name] if self.traces else (self.place / name).rglob("*.tb_dlprof"))
        )


def parts(data: Path, quick: bool, logdirs: Sequence[Path], traces: Sequence[Path]) -> list[Part]:
    """What is recorded in a repository, or of it what ``quick`` names; and, always, ``logdirs`` and ``traces``."""
    found: list[Part] = []
    if quick:
        found += [Part(name, data / name, names, deep=name in DEEP) for name, names in QUICK_RUNS.items()]
        for path in map(Path, QUICK_TRACES):
            found.append(Part(str(path), data / path.parent, (path.name,), traces=True))
        found += _ranks(data, RANKS[:1])
    else:
        for name in LOGDIRS:
            found += _runs(data / name, name)
        for name in TRACES:
            found += _traces(data / name, name)
        found += _ranks(data, RANKS)
    for logdir in logdirs:
        found += _runs(logdir, logdir.name)
    for folder in traces:
        found += _traces(folder, folder.name)
    return sorted(found, key=lambda part: -part.size * (4 if part.deep else 1))


def _runs(logdir: Path, subject: str) -> Iterable[Part]:
    """The runs of a logdir by the directory that they lie in, and, of a small one, all of them together."""
    places: dict[Path, set[str]] = {}
    for file in logdir.rglob("*.tb_dlprof"):
        run = file.parent
        places.setdefault(run.parent, set()).add(run.name)
    for place, names in sorted(places.items()):
        name = f"{subject}/{place.relative_to(logdir).as_posix()}".removesuffix("/.")
        yield Part(name, place, tuple(sorted(names)), deep=name in DEEP)
    if subject == "demo/recorded":
        runs = sorted((place / name).relative_to(logdir).as_posix() for place in places for name in places[place])
        yield Part(subject, logdir, tuple(runs), together=True)


def _traces(folder: Path, subject: str) -> Iterable[Part]:
    for path in sorted(folder.rglob("*")):
        if path.name.endswith(_ENDINGS) and not path.name.endswith(_NO_TRACES):
            name = f"{subject}/{path.relative_to(folder).as_posix()}"
            yield Part(name, path.parent, (path.name,), traces=True)


def _ranks(data: Path, ranks: Iterable[Sequence[str]]) -> Iterable[Part]:
    for files in ranks:
        if all((data / file).exists() for file in files):
            folder = Path(files[0]).parent
            names = tuple(Path(file).name for file in files)
            yield Part(f"{folder}/{'+'.join(names)}", data / folder, names, traces=True, together=True)
