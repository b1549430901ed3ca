"""Models and results in files: whole or not at all, and without pickle."""
