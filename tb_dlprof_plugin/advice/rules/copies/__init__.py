"""Rules of the topic "Copies and waits", with the helpers that only they use."""
