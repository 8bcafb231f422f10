"""A third backend: rows of a dense matrix dealt out to threads, which count their products.

Two small classes, and every solver, the likelihood, its search, the conditional distribution, leave-one-out, the linear
base, propagation and neighbour features run on it as they are.
"""

import threading

import numpy as np

from residua.linalg import Matrix, Rows


class Meeting:
    """Where threads leave their parts for each other."""

    def __init__(self, size):
        self.size, self.barrier, self.parts = size, threading.Barrier(size), [None] * size


class ThreadRows(Rows):
    """Reductions over the rows of all threads at a meeting."""

    def __init__(self, meeting, rank):
        self.meeting, self.rank = meeting, rank

    def gather(self, part, then=None):
        self.meeting.parts[self.rank] = part
        self.meeting.barrier.wait(60)
        parts = list(self.meeting.parts)
        self.meeting.barrier.wait(60)
        return parts if then is None else then(parts)

    def sum(self, partial, then=None):
        total = sum(self.gather(partial))
        return total if then is None else then(total)

    def max(self, partial):
        return np.max(self.gather(partial), axis=0)

    def agree(self, value):
        return self.gather(value)[0]

    def kth_smallest(self, values, k):
        return float(np.sort(np.concatenate(self.gather(values)))[k - 1])


class DenseRows(Matrix):
    """Rows ``mine`` of a dense symmetric S with row sums of A as ``degree``."""

    dtype = np.dtype(float)

    def __init__(self, S, degree, mine, rows):
        self.S, self.degree, self.mine, self.rows = S, degree, mine, rows
        self.shape, self.n_local, self.first = S.shape, len(mine), int(rows.gather(len(mine), np.cumsum)[rows.rank])
        self.first -= self.n_local
        self.nnz, self.products = int((S[mine] != 0).sum()), 0

    def combine(self, V, p, Z=None, q=None, out=None, inner=True):
        self.products += 1
        found = (self.S[self.mine] @ np.concatenate(self.rows.gather(V))) * p
        if Z is not None:
            found = found + Z * q
        if out is not None:
            out[...] = found
            found = out
        return found, self.rows.inner(found, V) if inner else np.empty(0)

    def submatrix(self, rows):
        chosen = np.concatenate(self.rows.gather(self.mine[rows]))
        first = int(np.sum([len(part) for part in self.rows.gather(rows)][: self.rows.rank]))
        mine = np.arange(first, first + len(rows))
        return DenseRows(self.S[np.ix_(chosen, chosen)], self.degree[chosen], mine, self.rows)

    def scaled(self, c):
        every = np.concatenate(self.rows.gather(c))
        return DenseRows(every[:, None] * self.S * every, self.degree, self.mine, self.rows)

    def diagonal(self):
        return np.diag(self.S)[self.mine]

    def noise(self, alpha, rng):
        values, vectors = np.linalg.eigh(np.eye(len(self.S)) - alpha * self.S)
        root = vectors * np.sqrt(np.maximum(values, 0))
        return lambda count: (root @ rng.standard_normal((len(self.S), count)))[self.mine]

    def inverse_scale(self):
        return np.where(self.S.any(axis=1), np.sqrt(self.degree), 0.0)[self.mine]

    def component_sums(self, values):
        together = np.linalg.matrix_power(np.eye(len(self.S)) + (self.S != 0), len(self.S)) > 0
        return (together @ np.concatenate(self.rows.gather(values)))[self.mine]

    def power_moments(self, budget=np.inf):
        return np.array([np.trace(np.linalg.matrix_power(self.S, j)) for j in range(5)])


class ToyGraph:
    """The part of a graph that one thread holds."""

    near_order = None

    def __init__(self, graph, mine, rows):
        self.rows, self.mine, self.n_nodes, self.edge_types = rows, mine, len(mine), graph.edge_types
        self.whole, self.degree = graph, graph.degree[mine]
        self.operators = {t: DenseRows(S.dense(), graph.degree, mine, rows) for t, S in graph.operators.items()}

    def _everywhere(self, mask):
        return np.concatenate(self.rows.gather(mask))

    def reached(self, labelled):
        return self.whole.reached(self._everywhere(labelled))[self.mine]

    def count_components(self, labelled):
        return self.whole.count_components(self._everywhere(labelled))


def on_threads(graph, size, task):
    """``task(part of the graph)`` on each thread; its results, in order."""
    meeting, out, errors = Meeting(size), [None] * size, []

    def run(rank, mine):
        try:
            out[rank] = task(ToyGraph(graph, mine, ThreadRows(meeting, rank)))
        except BaseException as error:
            errors.append(error)
            meeting.barrier.abort()

    parts = np.array_split(np.arange(graph.n_nodes), size)
    threads = [threading.Thread(target=run, args=(rank, mine)) for rank, mine in enumerate(parts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise next((e for e in errors if not isinstance(e, threading.BrokenBarrierError)), errors[0])
    return out
