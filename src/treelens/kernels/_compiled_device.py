"""Kernels for a GPU: sums over lists of patterns, the mixture kernel and its slopes.

Twins on the CPU: :mod:`treelens.kernels._compiled`, :mod:`treelens.kernels.gram`.
Every block of threads owns one row of the matrix, and a tile of it at a time lies in the memory
that the block shares, so that scattered additions never leave the chip. Within one pattern no two
threads meet at the same graph, and patterns take turns: results are the same to the last bit in
every run.

Numba's simulator runs all of it on a CPU, which is how it is tested where there is no GPU.
"""

import math

from numba import cuda, float64

THREADS = 256  # of a block; a power of two
GROUP = 32  # threads that gather one pattern together
TILE = 5888  # columns in shared memory: with one number per thread 48 KiB, what any GPU has


@cuda.jit
def sums_of_minima(
    row_offsets, row_patterns, row_counts, weights, list_starts, list_graphs, list_counts, out
):
    """``out[i, j] = sum_v weights_v min(count_iv, count_jv)``; a block is a row and a tile."""
    # `list_starts` (n_patterns, n_tiles + 1): where each pattern's list enters each tile.
    row, tile, thread = cuda.blockIdx.x, cuda.blockIdx.y, cuda.threadIdx.x
    sums = cuda.shared.array(TILE, float64)
    first = tile * TILE
    width = min(TILE, out.shape[1] - first)
    for column in range(thread, width, THREADS):
        sums[column] = 0.0
    cuda.syncthreads()
    for entry in range(row_offsets[row], row_offsets[row + 1]):
        pattern, count = row_patterns[entry], row_counts[entry]
        weight = weights[pattern]
        end = list_starts[pattern, tile + 1]
        for place in range(list_starts[pattern, tile] + thread, end, THREADS):
            sums[list_graphs[place] - first] += weight * min(count, list_counts[place])
        cuda.syncthreads()
    for column in range(thread, width, THREADS):
        out[row, first + column] = sums[column]


@cuda.jit
def mixture(sums, left_diagonal, right_diagonal, gamma, rho, amplitude, share, out):
    """Kernel values from sums; a block is a row; ``out`` may be ``sums``."""
    row = cuda.blockIdx.x
    for column in range(cuda.threadIdx.x, sums.shape[1], THREADS):
        both = left_diagonal[row] + right_diagonal[column]
        shared = sums[row, column]
        union = both - shared
        tanimoto = shared / union if union > 0.0 else 1.0
        distance = max(both - 2.0 * shared, 0.0)
        out[row, column] = amplitude * (
            share * math.exp(-gamma * (1.0 - tanimoto)) + (1.0 - share) * math.exp(-rho * distance)
        )


@cuda.jit
def mixture_slopes(sums, diagonal, gamma, rho, amplitude, share, alpha, matrix, totals):
    """Overwrite an inverse covariance with slopes in the sums of pairs; a block is a row."""
    # `matrix` (n, n) is symmetric. `totals` (n, 5) are a row's slopes in the graph's own sum, in
    # log gamma, log rho, log amplitude and the share; every pair stands in the matrix twice.
    row, thread = cuda.blockIdx.x, cuda.threadIdx.x
    partial = cuda.shared.array((5, THREADS), float64)
    n_columns = alpha.shape[1]
    by_own, by_gamma, by_rho, by_amplitude, by_share = 0.0, 0.0, 0.0, 0.0, 0.0
    for column in range(thread, sums.shape[1], THREADS):
        if column == row:
            matrix[row, column] = 0.0
            continue
        explained = 0.0
        for p in range(n_columns):
            explained += alpha[row, p] * alpha[column, p]
        pull = matrix[row, column] - explained / n_columns
        both = diagonal[row] + diagonal[column]
        shared = sums[row, column]
        union = both - shared
        tanimoto, per_shared, per_own = 1.0, 0.0, 0.0
        if union > 0.0:
            tanimoto = shared / union
            per_shared = both / (union * union)
            per_own = -shared / (union * union)
        distance = max(both - 2.0 * shared, 0.0)
        near = math.exp(-gamma * (1.0 - tanimoto))
        far = math.exp(-rho * distance)
        by_tanimoto = pull * amplitude * share * gamma * near
        by_distance = pull * amplitude * (1.0 - share) * rho * far
        matrix[row, column] = by_tanimoto * per_shared + 2.0 * by_distance
        by_own += by_tanimoto * per_own - by_distance
        by_gamma -= by_tanimoto * (1.0 - tanimoto)
        by_rho -= by_distance * distance
        by_amplitude += pull * amplitude * (share * near + (1.0 - share) * far)
        by_share += pull * amplitude * (near - far)
    partial[0, thread], partial[1, thread], partial[2, thread] = by_own, by_gamma, by_rho
    partial[3, thread], partial[4, thread] = by_amplitude, by_share
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        if thread < half:
            for k in range(5):
                partial[k, thread] += partial[k, thread + half]
        cuda.syncthreads()
        half //= 2
    if thread < 5:
        totals[row, thread] = partial[thread, 0]


@cuda.jit
def gather_minima(
    row_offsets, row_patterns, row_counts, list_starts, list_graphs, list_counts, matrix, gathered
):
    """``gathered[e] += sum_j matrix[i, j] min(count_e, count_jv)`` for every entry of a row."""
    # An entry `e` is a pattern `v` with its count in graph `i`; a block is a row.
    row, thread = cuda.blockIdx.x, cuda.threadIdx.x
    group, lane = thread // GROUP, thread % GROUP
    values = cuda.shared.array(TILE, float64)
    partial = cuda.shared.array(THREADS, float64)
    first_entry, last_entry = row_offsets[row], row_offsets[row + 1]
    for tile in range(list_starts.shape[1] - 1):
        first = tile * TILE
        for column in range(thread, min(TILE, matrix.shape[1] - first), THREADS):
            values[column] = matrix[row, first + column]
        cuda.syncthreads()
        for base in range(first_entry, last_entry, THREADS // GROUP):
            entry = base + group
            total = 0.0
            if entry < last_entry:
                pattern, count = row_patterns[entry], row_counts[entry]
                end = list_starts[pattern, tile + 1]
                for place in range(list_starts[pattern, tile] + lane, end, GROUP):
                    total += values[list_graphs[place] - first] * min(count, list_counts[place])
            partial[thread] = total
            cuda.syncthreads()
            if lane == 0 and entry < last_entry:
                for k in range(1, GROUP):
                    total += partial[thread + k]
                gathered[entry] += total
            cuda.syncthreads()
