"""DLProf's textual reports: a profile and a selection in, a table with DLProf's columns out, as CSV or JSON."""
