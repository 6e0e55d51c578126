"""The data structures: timeline, profile, run facts, intervals, trees. Imports no other package of the project."""
