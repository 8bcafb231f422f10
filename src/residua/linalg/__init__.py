"""Operators, solvers and log-determinants of sparse symmetric matrices. Knows no graph and no label."""

from residua.linalg.cg import CG, NotConverged, Solution
from residua.linalg.logdet.exact import Cholesky, Eigen, Estimate, Ratio, Strategy
from residua.linalg.logdet.stochastic import Lanczos
from residua.linalg.operator import Operator, Shifted, Sparse, connected_components, weighted_sum
from residua.linalg.solve import Solver

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
