"""Graphs in: one frozen collection from files, molecules and other libraries' graphs."""
