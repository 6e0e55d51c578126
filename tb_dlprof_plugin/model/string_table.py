"""A string table under construction: maps text to a stable index; index 0 is the empty string."""

from __future__ import annotations


class StringTable:
    """Interns strings in order of first use."""

    def __init__(self) -> None:
        self.values: list[str] = [""]
        self._index: dict[str, int] = {"": 0}

    @classmethod
    def over(cls, values: list[str]) -> StringTable:
        """A table that goes on filling an existing list (of a repeated string the first index counts)."""
        table = cls()
        table.values = values
        for index, text in enumerate(values):
            table._index.setdefault(text, index)
        return table

    def add(self, text: str) -> int:
        """The index of ``text``, added if it is new."""
        index = self._index.get(text)
        if index is None:
            index = self._index[text] = len(self.values)
            self.values.append(text)
        return index
