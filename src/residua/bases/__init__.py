"""Base regressors."""
