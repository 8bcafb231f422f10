"""The page that a fitted model writes."""
