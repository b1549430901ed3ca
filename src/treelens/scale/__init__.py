"""Many graphs: blocks, executors (threads, processes, Dask) and matrices on disk."""
