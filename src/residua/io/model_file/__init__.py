"""Model files: a fitted GraphRegressor as JSON, arrays and, for a scikit-learn base, a skops part.

    model.residua = zip, stored, of model.json + arrays.safetensors [+ base.skops], or of several such and weights

Nothing in it is code. Members are not compressed, so a file cannot unfold into more than its own size. ``save`` packs
everything in memory first, then replaces the file in one step; ``load`` checks every part before it is used.
"""

from residua.io.model_file.container import ModelFileError
from residua.io.model_file.model import load, save

__all__ = ["ModelFileError", "load", "save"]
