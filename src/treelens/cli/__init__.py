"""The command line: one file a command; each parses, calls a function that works, and shows."""
