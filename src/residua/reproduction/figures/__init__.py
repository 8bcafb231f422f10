"""The paper's figures, each an experiment that draws what it measured."""

from residua.reproduction.figures.accuracy import fig_accuracy
from residua.reproduction.figures.election import fig_election
from residua.reproduction.figures.features import fig_features
from residua.reproduction.figures.inductive import fig_inductive
from residua.reproduction.figures.ising import fig_ising
from residua.reproduction.figures.scaling import fig_scaling

__all__ = ["fig_accuracy", "fig_election", "fig_features", "fig_inductive", "fig_ising", "fig_scaling"]
