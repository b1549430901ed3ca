"""Theory, computed: constants of the loss, stability and generalisation bounds, measured risk."""
