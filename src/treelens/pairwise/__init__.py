"""Learning weights from pairs of graphs: the paper's method, its solvers and its bounds."""
