"""Optional packages, by the extra of the installation that brings them: the one sentence that says how to get them."""

from __future__ import annotations


def how_to_install(extra: str) -> str:
    """Return what to do to have the packages of an extra; there is no release on PyPI yet, but a checkout works."""
    return f'in your checkout of residua run: pip install ".[{extra}]"'


def needs(what: str, package: str, extra: str, error: ImportError, otherwise: str = "") -> str:
    """Return the message of an import that failed for want of an extra.

    Parameters
    ----------
    what : str
        What was asked for.
    package : str
        The package that it needs.
    extra : str
        The extra that brings it.
    error : ImportError
        What the import said.
    otherwise : str
        What to do instead.

    Returns
    -------
    str
    """
    return f"{what} needs {package} ({error}); {how_to_install(extra)}{otherwise and f', or {otherwise}'}."
