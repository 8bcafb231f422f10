"""Log-determinants of ``I - M`` relative to a principal submatrix, exact or estimated."""
