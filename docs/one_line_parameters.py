"""For the API page: read ``name : what it is`` in a docstring as a description, not as a type.

Our docstrings describe most parameters in one line. numpydoc takes what follows the colon for a type, unless a
description follows on lines of its own; those begin with a capital letter, and are left as they are.
"""

import re
from typing import Any

from griffe import Extension, Object

ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*) : (.+)$")


class OneLineParameters(Extension):
    """Moves the text after the colon to the line below."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of every object that has one."""
        if obj.docstring:
            obj.docstring.value = rewrite(obj.docstring.value)


def rewrite(text: str) -> str:
    lines = text.splitlines()
    followed = [*lines[1:], ""]
    return "\n".join(split(line, after) for line, after in zip(lines, followed, strict=True))


def split(line: str, after: str) -> str:
    described_below = after.startswith("    ") and after.strip()[:1].isupper()
    return line if described_below else ENTRY.sub(r"\1\n    \2", line)
