"""Networks as bases; all but checkpoints and progress need torch."""
