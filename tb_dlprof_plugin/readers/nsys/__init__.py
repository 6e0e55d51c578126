"""Reads Nsight Systems: SQLite databases that ``nsys export`` writes, and reports through the user's own nsys."""
