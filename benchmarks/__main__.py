"""``make bench``: every claim of speed, measured in one run on one machine."""

import platform

import numba
import numpy
import scipy
from rich.console import Console

import residua
from benchmarks import defaults, ensemble, fit, layers, people, scaling, training

console = Console(width=110)
versions = f"numpy {numpy.__version__}, scipy {scipy.__version__}, numba {numba.__version__}"
console.print(f"residua {residua.__version__}, Python {platform.python_version()}, {versions}", highlight=False)
console.print(f"{numba.get_num_threads()} threads\n", highlight=False)
fit.run(console=console)
scaling.run(console=console)
people.run(console=console)
training.run(console=console)
defaults.run(console=console)
layers.run(console=console)
ensemble.run(console=console)
