"""The Timeline page: one iteration's calls, GPU work and gaps as rows of events, in responses of bounded size."""
