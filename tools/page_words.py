"""Checks that pages use plain words, the field's words, or words that they explain; run by ``make lint``.

    python tools/page_words.py

A word is plain if Python's own documentation has it: the help topics and the docstrings of the standard library. It is
one of the field if PyTorch's or CUDA's documentation has it: `FIELD` lists those. Other words need an explanation: a
label with a definition, or a row of the glossary in docs/style.md. Code, names of options and words with digits are
left out. Prints ``path: words`` for each file with words that are neither; the exit status is 1 if there is one.
"""

from __future__ import annotations

import ast
import pydoc_data.topics
import re
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import definition_files
from check_words import ROOT, shown_texts

from tb_dlprof_plugin.pages.columns import columns_of
from tb_dlprof_plugin.web.typescript import answers, reachable

FIELD = """
accumulation adagrad adam algebra allocator amp anomaly autocast autograd auxiliary axis benchmark bottleneck clipping
collective concurrency convolution cuda cudnn dataloader ddp decay depthwise deterministic dims dropout dtype dynamo
expandable experts fft flight fsdp fuse fusion fx gloo gradient hsdp hyperparameters imbalanced inductor inference
joule kb kwh latency mantissa matmul matrices mb memcpy memset mesh metric mhz microbatch momentum mps nccl nchw nhwc
norm normalisation numa nvidia nvlink nvtx pageable parallelism pcie permute pin pinned pointwise pooling rccl
replicas scratch sgd shm sm softmax sparsity throughput torch torchrun train transpose triton tune underutilized
vocabulary volta warps winograd workspace xla apex bitsandbytes bnb dlprof flax gpipe hta ibstat keras nsight nsys
nvprof onnx parquet perfetto prof pyarrow tensorboard trtexec
"""
"""Of PyTorch's, CUDA's and NVIDIA's documentation, and the tools that pages name."""

PLAIN = """
advise agree agreed arrive began begun board brake breakdown broke budget busier busiest chart cheap checkout chose
colour compete concern contradict dashed detector disagree eligibility esc evidence exchange experiment fires freeze
frequent frontier furthest gave gone gram grew halves harmless headline heat hundred hybrid inefficient innermost
judge legend meanwhile medium mine mistake negligible neighbour notably nowhere paid partner pay penalty picture
predict price proportion proven provider publish quarter recommendation resident rise saw shorten slowdown spare spend
spreadsheet stage stay straggler straight suggest swap sweep synchronise temperature threshold timeline topo twenty
warm muted noopener noreferrer px
"""
"""Of everyday English, which Python's documentation happens to lack; the last are markup."""

_SHOWN = (
    "frontend/src/**/*.tsx", "tb_dlprof_plugin/pages/*.py", "tb_dlprof_plugin/advice/rules/**/*.py",
    "tb_dlprof_plugin/comparison/*.py", "tb_dlprof_plugin/fleet/answers/*.py", "tb_dlprof_plugin/metrics/*.py",
)  # fmt: skip
_CODE = re.compile(
    r"`[^`]*`|\[[^\]]*\]\([^)]*\)|\$?\{[^{}]*\}|https?://\S+|&\w+;|\S*[_/=\\@<>(]\S*|\b\w+\.\w\S*|\b\w*\d\w*|\b\w+[a-z][A-Z]\w*|--?\w\S*"
)
_WORD = re.compile(r"[A-Za-z]{2,}")
_DOCSTRING = re.compile(r'"""([\s\S]*?)"""')
_ENDINGS = ("s", "es", "d", "ed", "ing", "r", "er", "st", "est", "ly", "al", "ion", "ions")


def main() -> int:
    """Prints the findings; the exit status."""
    found = unexplained()
    for path, words in found.items():
        print(f"{path}: {', '.join(words)}")
    if found:
        print(
            "Use a plain word, or explain it: a definition at its label, or the glossary in docs/style.md.",
            file=sys.stderr,
        )
    return 1 if found else 0


def unexplained() -> dict[str, list[str]]:
    """By file, the words that are not plain, not the field's, and not explained."""
    known = plain_words() | {*FIELD.split()} | explained_words()
    found: dict[str, set[str]] = {}
    for path, text in shown():
        if words := {word for word in words_of(text) if not is_known(word, known)}:
            found.setdefault(path.relative_to(ROOT).as_posix(), set()).update(words)
    return {path: sorted(words) for path, words in found.items()}


def shown() -> Iterator[tuple[Path, str]]:
    """The texts of pages with their files."""
    for path in (path for pattern in _SHOWN for path in sorted(ROOT.glob(pattern)) if ".test." not in path.name):
        if path.suffix == ".py":
            yield from ((path, text) for text in _strings(path))
        else:
            yield from ((path, text) for _, text in shown_texts(path.read_text(encoding="utf-8")))


def plain_words() -> set[str]:
    """Those of Python's own documentation, and `PLAIN`."""
    library = Path(sysconfig.get_path("stdlib"))
    texts = [*pydoc_data.topics.topics.values(), PLAIN]
    for path in (*library.glob("*.py"), *library.glob("[a-z]*/*.py")):
        if path.parent.name not in ("site-packages", "test", "tests"):
            texts += _DOCSTRING.findall(path.read_text(encoding="utf-8", errors="ignore"))
    return {word for text in texts for word in words_of(text)}


def explained_words() -> set[str]:
    """Of labels with definitions, and of the glossary's first column."""
    labels = [*definition_files.labels().values()]
    labels += [re.sub("([A-Z]+)", r" \1", key) for key in definition_files.definitions()]
    labels += [column.declared.heading for struct in reachable(answers().values()) for column in columns_of(struct)]
    glossary = (ROOT / "docs" / "style.md").read_text(encoding="utf-8").split("## Glossary")[1]
    labels += re.findall(r"^\| ([^|]+) \|", glossary, re.MULTILINE)
    return {word for label in labels for word in words_of(label)}


def words_of(text: str) -> list[str]:
    """In lower case, without code."""
    return [word.lower() for word in _WORD.findall(_CODE.sub(" ", text))]


def is_known(word: str, known: set[str]) -> bool:
    """Whether it, or what it is a form of, is known."""
    forms = {word, word.removeprefix("un"), word.removeprefix("re")}
    for one in list(forms):
        for ending in _ENDINGS:
            if one.endswith(ending):
                stem = one.removesuffix(ending)
                forms |= {stem, f"{stem}e", stem[:-1] if stem[-1:] == stem[-2:-1] else stem}
        forms |= {f"{one[:-3]}y"} if one.endswith("ies") else set()
    return not forms.isdisjoint(known)


def _strings(path: Path) -> Iterator[str]:
    """The texts of a module: strings with a blank. A docstring counts where it is the text of a rule."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    left_out = set() if "rules" in path.parts else {id(tree.body[0])}
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and (node is not tree.body[0] or id(node) in left_out):
            left_out |= {id(one) for one in ast.walk(node)}
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and id(node) not in left_out else None
        if isinstance(text, str) and " " in text.strip():
            yield text


if __name__ == "__main__":
    sys.exit(main())
