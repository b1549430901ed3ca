"""Plain-Python twins of the averages of attributes and of the cells that nodes fall into."""

import math


def means_over_steps(values, neighbors, n_steps):
    """Attributes of the nodes of one graph, and their means over neighbours, step by step."""
    steps = [[list(row) for row in values]]
    for _ in range(n_steps):
        before, after = steps[-1], []
        for node, row in enumerate(before):
            means = []
            for column, own in enumerate(row):
                around = [before[k][column] for k in neighbors[node]]
                around = [x for x in around if not math.isnan(x)]
                means.append(sum(around) / len(around) if around else own)
            after.append(means)
        steps.append(after)
    return [[x for step in steps for x in step[node]] for node in range(len(values))]


def path(cells, tree, step, row):
    """The cell of one node at every resolution of one tree, split after split."""
    found, cell = [], 0
    first = (step * cells.n_trees + tree) * cells.n_resolutions
    for level in range(first, first + cells.n_resolutions):
        start, stop = cells.split_offsets[level], cells.split_offsets[level + 1]
        splits = range(start, stop)
        n_before = sum(2 if cells.attribute[k] >= 0 else 1 for k in splits[:cell])
        split = splits[cell]
        second = False
        if cells.attribute[split] >= 0:
            value = row[cells.attribute[split]]
            second = math.isnan(value) if cells.missing[split] else value > cells.threshold[split]
        cell = n_before + int(second)
        found.append(cell)
    return found
