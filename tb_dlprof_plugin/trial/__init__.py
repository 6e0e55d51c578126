"""Remedies tried on the user's own training: the experiment, its statistics and its verdicts. Imports no torch."""
