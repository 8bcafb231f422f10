"""How good predictions are, and what their residuals still share along edges."""

from residua.metrics.morans_i import MoranResult, morans_i
from residua.metrics.scores import (
    coverage,
    gaussian_crps,
    gaussian_nll,
    interval_score,
    r2,
    rmse,
    sample_crps,
    sign_accuracy,
)

__all__ = [
    "MoranResult",
    "coverage",
    "gaussian_crps",
    "gaussian_nll",
    "interval_score",
    "morans_i",
    "r2",
    "rmse",
    "sample_crps",
    "sign_accuracy",
]
