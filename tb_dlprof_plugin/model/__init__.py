"""The data that everything else is about: timeline, profile, run facts, intervals, trees. Imports nothing of ours."""
