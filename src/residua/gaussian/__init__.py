"""The Gaussian of the residuals on a graph: likelihood, fit, and what it says of unknown nodes."""

from residua.gaussian.conditional import Conditional, LeaveOneOut
from residua.gaussian.fit import CorrelationFit, fit_correlation
from residua.gaussian.likelihood import Likelihood, Omega
from residua.gaussian.propagation import propagate

__all__ = [
    "Conditional",
    "CorrelationFit",
    "LeaveOneOut",
    "Likelihood",
    "Omega",
    "fit_correlation",
    "propagate",
]
