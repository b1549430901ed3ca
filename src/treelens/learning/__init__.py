"""Learning which patterns matter: losses, constraints and solvers over pairs of graphs."""
