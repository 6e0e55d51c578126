"""Runs in, one HTML file out that shows them without a server: the answers of the routes, packed beside the page."""

from tb_dlprof_plugin.web.export.answers import AnsweredRuns, answer_all
from tb_dlprof_plugin.web.export.page import Made, PageExportError, html_file
from tb_dlprof_plugin.web.export.runs import ExportedRun

__all__ = ["AnsweredRuns", "ExportedRun", "Made", "PageExportError", "answer_all", "html_file"]
