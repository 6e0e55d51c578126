"""Checks comments, docstrings, texts and docs for the words that docs/style.md rules out; run by ``make lint``.

    python tools/check_words.py [PATH ...]

Python: comments and strings. Markdown: everything but code. TypeScript: comments, strings with a blank and text between
tags, but no CSS classes. Names in backticks are left out, because names of fields and options are interfaces. Prints
``path:line: word: use ...`` for each finding; the exit status is 1 if there is one.

It checks that no sentence in `frontend/src/**/*.tsx` has more than 20 words, too, of texts without values in between.
What Python says on pages is made of parts: tests/pages/test_sentences.py measures it in answers about recorded runs.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CHECKED = (
    "tb_dlprof_plugin", "lab", "demo", "docs", "frontend", "tests", "tools", "README.md", "CONTRIBUTING.md",
)  # fmt: skip
"""Files and folders that are checked by default."""

RULED_OUT = {
    r"mend(s|ed|ing)?": "repair (a file), fix (a problem)",
    r"promis(e|es|ed|ing)": "predict, predicted; guarantee",
    r"beside": "with, next to, in parallel with, in addition to",
    r"(hold|holds|held|holding)( \w+)? (against|up)": "compare with; delay",
    r"anew": "again",
    r"(is|are|was|were|be|been) told": "is called with, receives; is unknown; is distinguished",
    r"(what|whatever) (became|becomes|has become) of": "the outcome, the result",
    r"strangers?('s)?": "untrusted, from the traced program",
    r"honest(ly)?": "drop it, or say what is unknown",
    r"for ever": "without a limit",
    r"(go|goes|going|went) by": "uses",
    r"(speak|speaks|spoke|spoken|speaking)": "is about, applies to, fires",
    r"puts? (on|back) (the |a |its )?hooks?|(is|are) put on": "install",
    r"(hear|hears|heard)": "notice; is called",
    r"(nobody|somebody|whoever)( else)?": "passive voice, or name the reader of the data",
    r"shall": "must, does",
    r"dislikes?": "does not support, is slower with",
    r"(knows?|knew) (nothing|of)": "has no data on; supports",
    r"(say|says|said|tell|tells|told) nothing": "is not evidence of, does not show",
    r"(let|lets|letting) go": "release, drop the reference",
    r"(fare|fares|fared)": "state, result",
    r"runs? dry": "is idle, runs out of work",
    r"(takes?|taken) (it |them )?away": "remove",
    r"(is|are|was|were) no part of": "is not part of",
    r"to speak of|in one glance|as it were": "drop it",
    r"[fb]prop": "forward, backward",
}
"""What is ruled out, as a regular expression for whole words in any case, and what to write."""

ALLOWED = (
    "new Promise(",
    "Promise.",
    "Promise<",
    "[data-testid^=promised]",
    # What people type who have DLProf's words in mind.
    "conv bprop",
    "conv2 bprop",
    "conv2d bprop",
)
"""Quotations that may stay: a finding in one of them does not count."""

OWN_WORDS = dict.fromkeys(
    ("fprop", "bprop"),
    re.compile(
        r"^tb_dlprof_plugin/(reports|planning)/|^docs/reports\.md$|^tests/(reports|planning|lab)/|^lab/op_speed/"
        r"|^tests/tools/test_generate\.py$"
    ),
)
"""Words that are right in some files: DLProf's reports have them, and so do the kinds of the measured op times."""

LONGEST_SENTENCE = 20
"""Words of a sentence on a page."""
_SENTENCE_END = re.compile(r"(?<=[.?!:;])\s+")
_WORD = re.compile(r"\S*[A-Za-z]{2}\S*|\b[aAI]\b")
_PAGE = re.compile(r"^frontend/src/.*(?<!\.test)\.tsx$")

_PATTERN = re.compile(
    "|".join(rf"(?P<w{i}>\b(?:{word.replace(' ', chr(92) + 's+')})\b)" for i, word in enumerate(RULED_OUT)),
    re.IGNORECASE,
)
_ADVICE = tuple(RULED_OUT.values())
_CODE = re.compile(r"`+[^`\n]*`+|\{[^{}\n]*\}")
_TYPESCRIPT = re.compile(
    r"""\bclass=(?:"[^"]*"|\{`[^`]*`\})|//[^\n]*|/\*[\s\S]*?\*/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`|"""
    r">[^<>{}=;()]*[.\w ][^<>{}=;()]*<"
)
_SKIPPED = re.compile(
    r"(^|/)(node_modules|recorded\w*)/|^docs/rules/|_pb2\.pyi?$|(^|/)(test_)?check_words\.py$|^docs/(style|definitions)\.md$"
)
"""Stored and generated files, and those that list the words."""


def main(arguments: list[str]) -> int:
    """Prints the findings; the exit status."""
    found = 0
    for path in files(arguments or list(CHECKED)):
        name = path.relative_to(ROOT).as_posix()
        for line, word, advice in findings(path.read_text(encoding="utf-8"), path.suffix):
            if (own := OWN_WORDS.get(word.lower())) and own.search(name):
                continue
            found += 1
            print(f"{name}:{line}: {word!r}: {advice}")
        for line, sentence in page_sentences(path.read_text(encoding="utf-8")) if _PAGE.search(name) else ():
            found += 1
            print(f"{name}:{line}: more than {LONGEST_SENTENCE} words: {sentence}")
    if found:
        print(f"{found} words or sentences that docs/style.md rules out.", file=sys.stderr)
    return 1 if found else 0


def long_sentences(text: str) -> list[str]:
    """The sentences of a text with more than `LONGEST_SENTENCE` words; a colon or a semicolon ends one, too.

    What has no two letters in a row, such as a figure, is no word.
    """
    return [
        sentence
        for sentence in _SENTENCE_END.split(" ".join(text.split()))
        if len(_WORD.findall(sentence)) > LONGEST_SENTENCE
    ]


def page_sentences(text: str) -> Iterator[tuple[int, str]]:
    """Line and sentence, for each that is too long in what a page of TypeScript shows."""
    for line, piece in shown_texts(text):
        yield from ((line, sentence) for sentence in long_sentences(piece))


def shown_texts(text: str) -> Iterator[tuple[int, str]]:
    """Line and text of what a page of TypeScript shows: its strings with a blank, and what is between tags."""
    yield from ((line, piece) for line, piece in _typescript(text) if not piece.startswith(("//", "/*")))


def files(paths: list[str]) -> list[Path]:
    """The files below the paths that git tracks and that hold prose."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *paths], cwd=ROOT, capture_output=True, text=True, check=True
    )
    names = [name for name in listed.stdout.split("\0") if name and not _SKIPPED.search(name)]
    return [
        ROOT / name for name in names if Path(name).suffix in (".py", ".md", ".ts", ".tsx") and (ROOT / name).is_file()
    ]


def findings(text: str, suffix: str) -> Iterator[tuple[int, str, str]]:
    """Line, word and what to write instead, for each word in a file's prose that is ruled out."""
    prose = {".py": _python, ".md": _markdown}.get(suffix, _typescript)
    for first, piece in prose(text):
        plain = _CODE.sub(lambda code: " " * len(code.group()), piece)
        for match in _PATTERN.finditer(plain):
            around = piece[max(match.start() - 40, 0) : match.end() + 40]
            if any(quoted in around for quoted in ALLOWED):
                continue
            line = first + piece.count("\n", 0, match.start())
            yield line, " ".join(match.group().split()), _ADVICE[int(str(match.lastgroup)[1:])]


def _python(text: str) -> Iterator[tuple[int, str]]:
    comment: list[str] = []
    start = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if comment and token.start[0] != start + len(comment):
                yield start, "\n".join(comment)
                comment = []
            if not comment:
                start = token.start[0]
            comment.append(token.string.lstrip("# "))
        elif (token.type == tokenize.STRING and " " in token.string) or token.type == getattr(
            tokenize, "FSTRING_MIDDLE", None
        ):
            yield token.start[0], token.string
    if comment:
        yield start, "\n".join(comment)


def _markdown(text: str) -> Iterator[tuple[int, str]]:
    fenced = re.compile(r"^(```|~~~)[\s\S]*?^\1|^(?: {4}|\t)\S.*$", re.MULTILINE)
    yield 1, fenced.sub(lambda code: "\n" * code.group().count("\n"), text)


def _typescript(text: str) -> Iterator[tuple[int, str]]:
    for match in _TYPESCRIPT.finditer(text):
        piece = match.group()
        if piece.startswith("class=") or " " not in piece.strip():
            continue
        # A template string is prose, not a name in backticks.
        yield text.count("\n", 0, match.start()) + 1, f" {piece[1:-1]} " if piece.startswith("`") else piece


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
