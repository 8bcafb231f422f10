"""``--quick``: the same comparisons on smaller problems and fewer splits, for a busy machine."""

import os

QUICK = os.environ.get("RESIDUA_PEERS_QUICK") == "1"
