"""DLProf's textual reports: tables with DLProf's columns for a profile and a selection, as CSV or JSON."""
