"""Text from outside as visible characters: what would steer a terminal, or reorder a line, is written as an escape.

Names of ops, kernels, models, runs and GPUs come from the program that was traced, and paths from other people. A
terminal acts on some of their characters, and shows others as if they were not there.
"""

from __future__ import annotations

import html
import re

_HIDDEN = (
    r"\x00-\x1f\x7f-\x9f"  # C0 with ESC and line ends, DEL, and C1 with the 8-bit CSI and OSC
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional controls: Unicode Standard Annex 9, table 4
    r"\u00ad\u180e\u200b\u2028\u2029\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb"  # separators, no glyph
    r"\U000e0000-\U000e007f"  # tag characters
    r"\ud800-\udfff"  # surrogates: bytes of a file name that are not UTF-8, which no stream encodes
)
"""Zero-width joiners are not among them: scripts and emoji need them, and they move nothing."""
_ANY = re.compile(f"[{_HIDDEN}]")
_IN_JSON = re.compile(f"(?!\n)[{_HIDDEN}]")
_MARKDOWN = re.compile(r"[\\`*_\[\]|~@#]")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")


def visible(text: str) -> str:
    r"""The text on one line, with ``\x1b`` for the escape character, ``\n`` for a line end and so on, as Python has it.

    What is visible stays as it is, backslashes too, so that doing it twice changes nothing. The exact text is in JSON.
    """
    return _ANY.sub(_escaped, text)


def markdown_text(text: str) -> str:
    """`visible` text that Markdown shows as it is: nothing in it is formatted, a link, HTML or a mention."""
    return _MARKDOWN.sub(r"\\\g<0>", html.escape(visible(text), quote=False))


def visible_json(text: str) -> str:
    r"""A JSON document with ``\u009b`` in the place of what JSON itself does not escape: its values are the same."""
    return _IN_JSON.sub(_escaped_in_json, text)


def json_in_ascii(document: str) -> str:
    """A JSON document with the same values in ASCII, for streams that encode nothing else."""
    return _BEYOND_ASCII.sub(_escaped_in_json, document)


class VisibleMessage(Exception):
    """An error whose message holds names from outside: `visible` in tracebacks and notebooks, too."""

    def __init__(self, message: object = "") -> None:
        super().__init__(visible(str(message)))


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def _escaped_in_json(match: re.Match[str]) -> str:
    # Outside of the Basic Multilingual Plane JSON has a pair of surrogates.
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(rf"\u{units[at : at + 4]}" for at in range(0, len(units), 4))
