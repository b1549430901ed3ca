"""The one error that bad graph data raises."""


class GraphDataError(ValueError):
    """Graph data that cannot be read or does not fit together.

    The message names the place (file and line, or graph and node), what was expected and what
    to do about it. It is a ``ValueError``, so code written for scikit-learn catches it.
    """


class DegreeLabelsWarning(UserWarning):
    """Graphs came without node labels, so each node was labelled with its degree."""
