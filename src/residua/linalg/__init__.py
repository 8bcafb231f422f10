"""Operators, solvers and log-determinants of sparse symmetric matrices. Knows no graph and no label."""

from residua.linalg.cg import CG, NotConverged
from residua.linalg.logdet.exact import Cholesky, Eigen
from residua.linalg.logdet.stochastic import Lanczos
from residua.linalg.logdet.strategy import Estimate, Ratio, Strategy
from residua.linalg.operator import Matrix, Shifted, Sparse, connected_components, weighted_sum
from residua.linalg.rows import Rows
from residua.linalg.solve import Solver

__all__ = [
    "CG",
    "Cholesky",
    "Eigen",
    "Estimate",
    "Lanczos",
    "Matrix",
    "NotConverged",
    "Ratio",
    "Rows",
    "Shifted",
    "Solver",
    "Sparse",
    "Strategy",
    "connected_components",
    "weighted_sum",
]
