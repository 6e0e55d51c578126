"""Rules of the topic "Memory", with the helpers that only they use."""
