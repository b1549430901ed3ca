"""Every claim about speed and memory, measured against its rival in one run: ``make bench``."""
