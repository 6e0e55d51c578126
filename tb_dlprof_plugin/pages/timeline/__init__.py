"""The Timeline page: one iteration's calls, GPU work and gaps as rows of events, in answers of bounded size."""
