"""residua beside other libraries on the same problems: ``python -m benchmarks.peers``.

Ratios come from one run on one machine with the same threads, and accuracy stands beside every time. A peer that is
not installed is named in the result and left out.
"""
