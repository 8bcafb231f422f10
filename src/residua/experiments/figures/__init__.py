"""The paper's figures, each an experiment that draws what it measured."""

from residua.experiments.figures.accuracy import fig_accuracy
from residua.experiments.figures.election import fig_election
from residua.experiments.figures.features import fig_features
from residua.experiments.figures.inductive import fig_inductive
from residua.experiments.figures.ising import fig_ising
from residua.experiments.figures.scaling import fig_scaling

__all__ = ["fig_accuracy", "fig_election", "fig_features", "fig_inductive", "fig_ising", "fig_scaling"]
