"""The tags of profiles in event files, and their parts."""

from __future__ import annotations

import re
from dataclasses import dataclass

PLUGIN_NAME = "tb_dlprof"
_TAG = re.compile(r"tb_dlprof/v1/(?P<session>[A-Za-z0-9_.-]+)/rank(?P<rank>\d+)\Z")


@dataclass(frozen=True, slots=True)
class Tag:
    """``tb_dlprof/v1/<session>/rank<k>``; the step of its values is the cycle."""

    session: str
    rank: int

    def __str__(self) -> str:
        return f"tb_dlprof/v1/{self.session}/rank{self.rank}"

    @property
    def of_facts(self) -> str:
        """The tag of the facts of these ranks, each with the step and the time of its profile."""
        return f"{self}/facts"

    @classmethod
    def parse(cls, text: str) -> Tag | None:
        """The parts of a tag, or None for a tag that is not ours."""
        match = _TAG.match(text)
        return None if match is None else cls(match["session"], int(match["rank"]))
