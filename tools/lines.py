"""Count lines of code by folder, without docstrings, comments and blanks: ``python tools/lines.py [src/residua]``."""

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

LAYOUT = {getattr(tokenize, name) for name in ("COMMENT", "NL", "NEWLINE", "INDENT", "DEDENT", "ENDMARKER")}
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def lines(source: str) -> int:
    """Return how many lines of a file hold code."""
    docstrings = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            first = node.body[0]
            docstrings.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    tokens = (t for t in tokenize.generate_tokens(io.StringIO(source).readline) if t.type not in LAYOUT)
    code = {line for token in tokens for line in range(token.start[0], token.end[0] + 1)}
    return len(code - docstrings)


if __name__ == "__main__":
    root = Path(sys.argv[1] if len(sys.argv) > 1 else "src/residua")
    found: Counter[str] = Counter()
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).parts
        found[parts[0] if len(parts) > 1 else "."] += lines(path.read_text(encoding="utf-8"))
    for folder, count in sorted(found.items()):
        print(f"{count:6,} {folder}")
    print(f"{found.total():6,} in all, {found.total() - found['reproduction']:,} without reproduction")
