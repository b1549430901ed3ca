"""Model files: named arrays and JSON in one archive, written whole, read without running code."""
