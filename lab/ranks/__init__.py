"""Recordings of jobs of several ranks, each even and with one planted cause, and what is measured on them."""
