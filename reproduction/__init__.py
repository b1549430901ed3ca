"""Studies of the second edition: weights learned by evidence, for numbers and for classes.

They use the library as anybody would, and are not part of it. Rows are kept under
``docs/results``; a run that was stopped goes on where it was.
"""
