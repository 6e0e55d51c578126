"""Rules of the topic "CPU, launches and idle GPU", with the helpers that only they use."""
