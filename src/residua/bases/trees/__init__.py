"""Boosted trees, grown together with the correlation of what they leave over."""
