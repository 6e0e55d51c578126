"""Answers about several jobs: two compared, and how a training scales with its GPUs."""
