"""The Gaussian of the residuals on a graph: likelihood, fit, and what it says of unknown nodes."""

from residua.field.conditional import Conditional, LeaveOneOut
from residua.field.likelihood import Likelihood, Omega
from residua.field.profile import CorrelationFit, fit_correlation
from residua.field.propagation import propagate

__all__ = [
    "Conditional",
    "CorrelationFit",
    "LeaveOneOut",
    "Likelihood",
    "Omega",
    "fit_correlation",
    "propagate",
]
