"""The same work on many machines, by Dask: ``pip install 'treelens[distributed]'``."""
