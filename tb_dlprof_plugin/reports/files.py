"""Reports as files, under DLProf's names: ``BASE_REPORT.csv``, ``.json`` and ``.parquet``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tb_dlprof_plugin.model.whole_file import whole_file
from tb_dlprof_plugin.reports.table import FORMATS, Report

BASE_NAME = "dlprof"


def write_reports(
    reports: Mapping[str, Report], formats: Sequence[str], folder: Path, base_name: str = BASE_NAME
) -> Iterator[Path]:
    """Writes each report in each format and yields the paths; files and links of the same names are replaced.

    Args:
        reports: by the names that the files have.
        formats: keys of `FORMATS`.
        folder: is made where it does not exist.
        base_name: what the file names begin with; blanks become underscores, as with DLProf.

    Raises:
        OSError: the folder or a file cannot be written.
        ModuleNotFoundError: a format needs a package that is not installed; the message says which.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, report in reports.items():
        for kind in formats:
            path = folder / f"{base_name.replace(' ', '_')}_{name}.{kind}"
            content = FORMATS[kind](report)
            with whole_file(path) as file:
                file.write(content)
            yield path
