"""Reads nvprof's databases (``nvprof -o``), which nvvp and PyProf read too."""
