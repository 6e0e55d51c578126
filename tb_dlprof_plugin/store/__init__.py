"""Stores profiles: `codec` converts them to protobuf, `event_file` reads and writes the files."""
