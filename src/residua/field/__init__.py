"""The Gaussian of the residuals on a graph: likelihood, fit, and what it says of unknown nodes."""

from residua.field.conditional import Conditional
from residua.field.correlation import CorrelationFit
from residua.field.correlator import Correlator, fit_correlation
from residua.field.likelihood import Likelihood
from residua.field.propagation import propagate

__all__ = ["Conditional", "CorrelationFit", "Correlator", "Likelihood", "fit_correlation", "propagate"]
