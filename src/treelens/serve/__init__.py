"""A local page and JSON interface for fitted models; both only call the library."""
