"""Reads what is readable of damaged trace JSON, and says what was lost."""
