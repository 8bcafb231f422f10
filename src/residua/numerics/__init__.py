"""Operators, solvers and log-determinants of sparse symmetric matrices. Knows no graph and no label."""

from residua.numerics.cg import CG, NotConverged, Solution
from residua.numerics.logdet import Cholesky, Eigen, Estimate, Ratio, Strategy
from residua.numerics.operator import Operator, Shifted, Sparse, connected_components, weighted_sum
from residua.numerics.solve import Solver
from residua.numerics.stochastic import Lanczos

__all__ = [
    "CG",
    "Cholesky",
    "Eigen",
    "Estimate",
    "Lanczos",
    "NotConverged",
    "Operator",
    "Ratio",
    "Shifted",
    "Solution",
    "Solver",
    "Sparse",
    "Strategy",
    "connected_components",
    "weighted_sum",
]
