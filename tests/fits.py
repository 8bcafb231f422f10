"""A fit of a likelihood that a test has made."""

from dataclasses import replace

from residua.field.correlation import maximise_likelihood
from residua.field.observed import Observed
from residua.field.profile import Profile


def fit_likelihood(likelihood, y, types, design=None):
    """Alpha, beta and coefficients of y (|L|,), with intervals from the very profile that was searched."""
    fit, profile = maximise_likelihood(Profile(likelihood, y, design), types)
    effort, steps = profile.ratio.effort, profile.quadratic_form.steps
    seen = Observed(None, None, y, design, likelihood.strategy, effort, steps)
    vars(seen)["profile"] = profile
    return replace(fit, source=seen)
