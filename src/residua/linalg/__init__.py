"""Operators, solvers and log-determinants of sparse symmetric matrices. Knows no graph and no label."""

from residua.linalg.cg import CG as CG
from residua.linalg.cg import NotConverged as NotConverged
from residua.linalg.logdet.exact import Cholesky as Cholesky
from residua.linalg.logdet.exact import Eigen as Eigen
from residua.linalg.logdet.stochastic import Lanczos as Lanczos
from residua.linalg.logdet.strategy import Estimate as Estimate
from residua.linalg.logdet.strategy import Ratio as Ratio
from residua.linalg.logdet.strategy import Strategy as Strategy
from residua.linalg.operator import Matrix as Matrix
from residua.linalg.operator import Shifted as Shifted
from residua.linalg.operator import Sparse as Sparse
from residua.linalg.operator import weighted_sum as weighted_sum
from residua.linalg.rows import Rows as Rows
from residua.linalg.solve import Solver as Solver
