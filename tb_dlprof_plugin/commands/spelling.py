"""DLProf's spellings of options: underscores, and names that its guide has for ours. They work, and no help lists them.

A command line of the DLProf User Guide then needs no changes in what the two have in common.
"""

from __future__ import annotations

from typing import Any

_NAMES = {"file-formats": "formats", "report": "reports", "profile-name": "base-name", "out": "output-path"}


def as_ours(option: str) -> str:
    """The option's name here: "key_node" is "key-node", "file_formats" is "formats"."""
    name = option.replace("_", "-")
    return _NAMES.get(name, name)


CONTEXT: dict[str, Any] = {"token_normalize_func": as_ours}
"""Settings of a command whose options may be spelled as DLProf's."""
