"""What was wrong with a trace file: counted while it is read, turned into notes at the end."""

from __future__ import annotations

from collections.abc import Collection

from tb_dlprof_plugin.model.timeline import TraceNote

_REPAIRED = {
    "bad_utf8": "Events with invalid UTF-8 were read with replacement characters.",
    "control_characters": "Events with control characters in their text were read with blanks in their place.",
    "not_a_number": "Events with NaN or Infinity: those values were read as not recorded.",
    "unescaped_text": "Events with unescaped quotes or backslashes in their text were repaired.",
    "odd_fields": "Events with fields of an unexpected type: those fields were read as not recorded.",
    "negative_duration": "Events with a negative duration were read as lasting 0 ns.",
    "stray_text": "Brackets, commas or words too many or missing between events were passed over.",
}
_LOST = {
    "events_lost": "Events could not be read and were left out.",
    "absurd_time": "Events without a usable time, or more than 19 hours from the others, were left out.",
}
_FILE = {
    "gzip_cut": "The gzip file ends early; what came after is lost.",
    "gzip_damaged": "The gzip file is damaged; what could be unpacked was read.",
    "cut_short": "The file ends in the middle of the JSON; what came after is lost.",
    "oversized": "One event is larger than 64 MiB; it and what came after were not read.",
    "text_behind": "Text behind the end of the JSON was not read.",
    "header_mended": "The file's header is not valid JSON; it was repaired and read in full.",
    "header_damaged": "The file's header could not be read whole; facts about the machine may be missing.",
    "python_exporter": "The file was written by EventList.export_chrome_trace(), which records no launches and no "
    "Tensor Core context; record with torch.profiler.tensorboard_trace_handler or tb_dlprof_plugin.profile.",
    "python_frames": "Python frames were recorded; used are those of nn.Module, and which function waits or copies.",
}
_REASONS = {
    "gzip_cut": "is a gzip file that ends early",
    "gzip_damaged": "is a damaged gzip file",
    "cut_short": "ends in the middle of the JSON",
    "oversized": "holds more than 64 MiB that are no event",
    "events_lost": "holds events that cannot be read ({})",
    "absurd_time": "holds events without a usable time ({})",
    "stray_text": "holds text that belongs to no event",
}
"""What to say of a file from which nothing could be read."""
_TEXTS = _REPAIRED | _LOST | _FILE


class Damage:
    """Counts by kind; see `_TEXTS` for the kinds. ``repaired`` counts repairs: events, and places between."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self.repaired = 0

    def add(self, code: str, count: int = 1) -> None:
        """Counts ``count`` cases more of a kind."""
        if count:
            self._counts[code] = self._counts.get(code, 0) + count
            self.repaired += count if code in _REPAIRED else 0

    def add_all(self, codes: Collection[str]) -> None:
        """Counts an event with several repairs: one case more of each, and one event."""
        for code in codes:
            self._counts[code] = self._counts.get(code, 0) + 1
        self.repaired += bool(codes)

    def reasons(self) -> str:
        """What is wrong with the file, as a part of a sentence: "ends in the middle of the JSON"; "" if nothing is."""
        return " and ".join(text.format(self._counts[code]) for code, text in _REASONS.items() if code in self._counts)

    def has(self, code: str) -> bool:
        """Whether any case of a kind was counted."""
        return code in self._counts

    def notes(self) -> list[TraceNote]:
        """One note for each kind, in the order of the kinds."""
        return [
            TraceNote(code, text, None if code in _FILE and code != "python_frames" else self._counts[code])
            for code, text in _TEXTS.items()
            if code in self._counts
        ]
