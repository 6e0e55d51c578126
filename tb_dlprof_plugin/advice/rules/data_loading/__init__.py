"""Rules of the topic "Data loading", with the helpers that only they use."""
