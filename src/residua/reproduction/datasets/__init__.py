"""Loaders of the data sets of the paper."""
