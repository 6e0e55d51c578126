"""Answers about a job from the facts of its ranks: one question, one file; `job_of` puts them together."""
