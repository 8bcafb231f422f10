"""Places where a wrong sign, a lost term or a count off by one has to make a test fail."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    """In ``file`` (under src/residua), ``right`` becomes ``wrong``; ``tests`` must notice."""

    name: str
    file: str
    right: str
    wrong: str
    tests: tuple[str, ...]


def _of(file: str, tests: str, *changes: tuple[str, str, str]) -> list[Mutation]:
    return [Mutation(name, file, right, wrong, tuple(tests.split())) for name, right, wrong in changes]


PLACES = [
    *_of(
        "linalg/cg.py",
        "tests/linalg/test_cg.py",
        ("direction of CG", "np.where(moving, rr / np.where(old > 0", "np.where(moving, -rr / np.where(old > 0"),
    ),
    *_of(
        "linalg/cg.py",
        "tests/field/test_numerical_edges.py -k converged",
        ("goal of CG", "residual <= tol)", "residual <= 1e3 * tol)"),
    ),
    *_of(
        "linalg/factor.py",
        "tests/field/test_numerical_edges.py -k factor",
        ("log-determinant of a factor", "np.log(self.D).sum()", "np.log(self.D[:-1]).sum()"),
    ),
    *_of(
        "linalg/lanczos.py",
        "tests/linalg/test_lanczos.py",
        ("third term of Lanczos", "-b / b_old if step", "b / b_old if step"),
        ("weights of quadrature", "vectors[:, 0, :] ** 2", "vectors[:, 0, :]"),
        (
            "third term of block Lanczos",
            "self.V - self.previous @ self.off[-1].T",
            "self.V + self.previous @ self.off[-1].T",
        ),
        ("size of the first block", "self.R = C * size", "self.R = C"),
    ),
    *_of(
        "linalg/logdet/exact.py",
        "tests/linalg/test_logdet.py",
        ("ratio of determinants", "self.all).sum() - np.log1p", "self.all).sum() + np.log1p"),
        ("slope of the ratio", "np.array([slope[1] - slope[0]])", "np.array([slope[0] - slope[1]])"),
        ("dense ratio", "float(logdets[0] - logdets[1])", "float(logdets[0] + logdets[1])"),
    ),
    *_of(
        "linalg/ldl.py",
        "tests/linalg/test_factor.py",
        ("pivot of a factor", "own -= entry * value", "own += entry * value"),
        ("diagonal of the inverse", "own += total[rows[e]] * values[e]", "own -= total[rows[e]] * values[e]"),
        ("row of the inverse", "total[k] += diagonal[k] * factor[k]", "total[k] -= diagonal[k] * factor[k]"),
    ),
    *_of(
        "linalg/logdet/stochastic.py",
        "tests/linalg/test_logdet.py",
        ("moments without the constants", "MOMENT_BUDGET) - self.kernel.count", "MOMENT_BUDGET)"),
        ("difference of sides", "exact = parts[0][0] - sum", "exact = parts[0][0] + sum"),
        ("standard error of probes", "/ np.sqrt(len(remainder))", "/ len(remainder)"),
        ("constants taken out", "Z[:, k] -= along", "Z[:, k] += along"),
    ),
    *_of(
        "linalg/logdet/stochastic.py",
        "tests/field/test_numerical_edges.py -k one_label",
        ("nodes that are one", "rcond=1e-10) * root", "rcond=1e-16) * root"),
    ),
    *_of(
        "linalg/solve.py",
        "tests/linalg/test_cg.py tests/field/test_numerical_edges.py",
        ("refinement", "X + factor.solve(B - A @ X)", "X - factor.solve(B - A @ X) + 1e-6 * X"),
    ),
    *_of(
        "linalg/sampling.py",
        "tests/linalg/test_sampling.py",
        ("variance from draws", "1 / A.diagonal() + squares", "squares"),
    ),
    *_of(
        "field/likelihood.py",
        "tests/field/test_likelihood.py",
        ("slope in alpha", "np.array([-(full * (S @ full)).sum()", "np.array([(full * (S @ full)).sum()"),
        ("slope in beta", "beta=q - len(self.L) / beta", "beta=q + len(self.L) / beta"),
        ("slope in residuals", "residual=2 * beta * Gr", "residual=beta * Gr"),
        ("log beta", "value=beta * q - len(self.L) * np.log(beta)", "value=beta * q + len(self.L) * np.log(beta)"),
        ("quadratic form", "- a * a * self.rule.apply", "- a * self.rule.apply"),
    ),
    *_of(
        "field/profile.py",
        "tests/field/test_profile.py",
        ("degrees of freedom", "chdtrc(self.p, max", "chdtrc(self.p + 1, max"),
        ("standard error of alpha", "np.sqrt(2 * np.diag(inverse))", "np.sqrt(np.diag(inverse))"),
        (
            "unit of the likelihood",
            "/ 2 - self.n * float(np.log(self.size))",
            "/ 2 + self.n * float(np.log(self.size))",
        ),
        ("standard error of beta", "2 / self.n + 2 * slope", "2 / self.n - 2 * slope"),
    ),
    *_of(
        "field/profile.py",
        "tests/field/test_numerical_edges.py -k probes",
        ("noise of probes", "self.omega(at) < 4 * noise", "self.omega(at) < -4 * noise"),
    ),
    *_of(
        "field/conditional.py",
        "tests/field/test_conditional.py",
        (
            "leverage of the mean",
            "self._schur_diagonal - self._design_leverage",
            "self._schur_diagonal + self._design_leverage",
        ),
        ("size of draws", ".T / np.sqrt(self.beta)", ".T / self.beta"),
        ("variance of a label left out", "1 / (self.beta * np.where(lone", "1 / (2 * self.beta * np.where(lone"),
    ),
]
QUICK = ("slope in alpha", "third term of block Lanczos", "diagonal of the inverse")
