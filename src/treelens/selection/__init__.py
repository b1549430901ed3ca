"""Choosing a model on the training graphs: candidates, their scores, and the race between them."""
