"""All ranks of a job together: facts of each, matched collectives, who waits for whom, what a repair would save."""
