"""Exports runs as one HTML file that needs no server: the page together with the packed responses of the routes."""

from tb_dlprof_plugin.web.export.answers import AnsweredRuns, answer_all
from tb_dlprof_plugin.web.export.page import Made, PageExportError, html_file
from tb_dlprof_plugin.web.export.runs import ExportedRun

__all__ = ["AnsweredRuns", "ExportedRun", "Made", "PageExportError", "answer_all", "html_file"]
