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
        ("moments without the constants", "MOMENT_BUDGET) - null_space.count", "MOMENT_BUDGET)"),
        ("difference of sides", "exact = parts[0].exact - sum", "exact = parts[0].exact + sum"),
        ("standard error of probes", "/ np.sqrt(len(remainder))", "/ len(remainder)"),
    ),
    *_of(
        "linalg/null_space.py",
        "tests/linalg/test_logdet.py",
        ("constants taken out", "Z[:, k] -= self.S.component_sums", "Z[:, k] += self.S.component_sums"),
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
        ("variance from draws", "1 / diagonal[:, 0].astype(float) + mean", "mean"),
    ),
    *_of(
        "field/likelihood.py",
        "tests/field/test_likelihood.py",
        ("slope in alpha", "np.array([-self.rows.inner(full, S @ full)", "np.array([self.rows.inner(full, S @ full)"),
        ("slope in beta", "beta=q - n / beta", "beta=q + n / beta"),
        ("slope in residuals", "residual=2 * beta * Gr", "residual=beta * Gr"),
        ("log beta", "value=beta * q - n * np.log(beta)", "value=beta * q + n * np.log(beta)"),
    ),
    *_of(
        "field/quadratic_form.py",
        "tests/field/test_likelihood.py",
        ("quadratic form", "- a * a * self.quadrature.apply", "- a * self.quadrature.apply"),
    ),
    *_of(
        "field/profile.py",
        "tests/field/test_profile.py",
        (
            "unit of the likelihood",
            "/ 2 - self.n * float(np.log(self.size))",
            "/ 2 + self.n * float(np.log(self.size))",
        ),
    ),
    *_of(
        "field/correlation.py",
        "tests/field/test_profile.py",
        ("degrees of freedom", "chdtrc(profile.p, max", "chdtrc(profile.p + 1, max"),
        ("correction of beta", "max(profile.n - len(theta), 1) / q", "profile.n / q"),
    ),
    *_of(
        "field/alpha_interval.py",
        "tests/field/test_profile.py",
        ("standard error of alpha", "np.sqrt(2 * np.diag(inverse))", "np.sqrt(np.diag(inverse))"),
        ("standard error of beta", "2 / profile.n + 2 * slope", "2 / profile.n - 2 * slope"),
    ),
    *_of(
        "field/search.py",
        "tests/field/test_numerical_edges.py -k probes",
        ("noise of probes", "profile.omega(a) < 4 * noise", "profile.omega(a) < -4 * noise"),
    ),
    *_of(
        "field/conditional.py",
        "tests/field/test_conditional.py",
        ("size of draws", ".T / np.sqrt(self.beta)", ".T / self.beta"),
    ),
    *_of(
        "field/leave_one_out.py",
        "tests/field/test_conditional.py",
        (
            "leverage of the mean",
            "given.schur_diagonal - (given.coefficients",
            "given.schur_diagonal + (given.coefficients",
        ),
        ("variance of a label left out", "1 / (given.beta * safe)", "1 / (2 * given.beta * safe)"),
    ),
    *_of(
        "field/prediction.py",
        "tests/test_later_labels.py",
        ("base that follows later labels", "base=self.base + shift", "base=self.base"),
        ("labels left out by members", "total / np.maximum(count, 1), error)", "total, error)"),
    ),
]
QUICK = ("slope in alpha", "third term of block Lanczos", "diagonal of the inverse")
