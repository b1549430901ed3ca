"""scikit-learn estimators: they validate and assemble, the inner rooms compute."""
