"""The stored summary: `model` is the Profile in memory, `codec` its protobuf form, `eventfile` the files with it."""
