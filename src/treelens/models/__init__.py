"""Fitted models as frozen data: what they were fitted to, what they decide, how sure they are."""
