"""Places where a wrong sign, a lost term or a count off by one has to make a test fail."""

from tests.mutations.mutation import changes
from tests.mutations.shell import SHELL

MATHEMATICS = [
    *changes(
        "graph/spatial_weights.py",
        "tests/graph/test_spatial_weights.py::test_knn_and_distance_are_those_of_all_pairs",
        ("degrees to the sphere", "flat * np.sin(longitude)", "flat * np.cos(longitude)"),
    ),
    *changes(
        "graph/evened.py",
        "tests/graph/test_evened.py::test_its_operator_is_the_identity_less_the_laplacian_over_the_highest_degree",
        ("self-loops of an evened graph", "sp.diags_array(degree.max() - degree)", "sp.diags_array(degree)"),
    ),
    *changes(
        "graph/adjacency.py",
        "tests/graph/test_lengths.py::test_weights_are_one_over_the_length_and_one_in_the_mean",
        ("weights of lengths", "return nearness / nearness.mean() if", "return nearness if"),
    ),
    *changes(
        "field/kinds.py",
        "tests/field/test_kinds.py::test_on_another_graph_the_smoothing_is_the_same",
        ("a Laplacian on another graph", "along * other / there, there", "along * degree / there, there"),
    ),
    *changes(
        "field/prediction.py",
        "tests/field/test_kinds.py::test_the_log_score_is_that_of_dense_leave_one_out",
        ("log score", "/ std) - np.log(std)))", "/ std) + np.log(std)))"),
    ),
    *changes(
        "linalg/solve.py",
        "tests/linalg/test_solve.py::test_a_system_with_hubs_is_solved_as_by_dense_algebra",
        ("back from an even diagonal", "X = found.X * E", "X = found.X / E"),
    ),
    *changes(
        "linalg/cg.py",
        "tests/linalg/test_cg.py::test_solution_is_the_dense_solution",
        ("direction of CG", "np.where(moving, rr / np.where(old > 0", "np.where(moving, -rr / np.where(old > 0"),
    ),
    *changes(
        "linalg/cg.py",
        "tests/field/test_numerical_edges.py::test_a_solve_is_called_converged_where_its_true_residual_is_small",
        ("goal of CG", "residual <= tol)", "residual <= 1e3 * tol)"),
    ),
    *changes(
        "linalg/combination.py",
        "tests/linalg/test_logdet.py::test_value_and_gradient_are_dense",
        ("coefficient of a type", "np.asarray(coefficients)[self.kind]", "np.asarray(coefficients)[0]"),
    ),
    *changes(
        "linalg/factor.py",
        "tests/field/test_numerical_edges.py::test_a_factor_has_the_log_determinant_of_its_matrix",
        ("log-determinant of a factor", "np.log(self.D).sum()", "np.log(self.D[:-1]).sum()"),
    ),
    *changes(
        "linalg/kernels/conditional_mean.py",
        "tests/linalg/test_conditional_mean.py::test_loss_and_slope_are_the_dense_ones_within_the_tolerance",
        ("quadratic form in one call", "q -= start[k] * rest[k]", "q += start[k] * rest[k]"),
    ),
    *changes(
        "linalg/kernels/maximum.py",
        "tests/bases/networks/test_layers.py::test_layers_are_those_of_pyg_in_value_and_gradient",
        ("weight of a maximum", "found[j, k] += weight * shares[i, k] if", "found[j, k] += shares[i, k] if"),
    ),
    *changes(
        "linalg/kernels/rows.py",
        "tests/linalg/test_cg.py::test_reported_residual_is_the_true_one",
        (
            "row of a product",
            "total = row_total(vs, indices, weights, indptr[i], indptr[i + np.uint64(1)]) * (p * scale[i])",
            "total = row_total(vs, indices, weights, indptr[i], indptr[i + np.uint64(1)]) * p",
        ),
    ),
    *changes(
        "linalg/kernels/rows.py",
        "tests/linalg/test_sampling.py::test_noise_has_the_precision_as_its_covariance",
        ("sign of edge noise", "out[j] -= np.sign(m) * scale[j] * draw", "out[j] -= scale[j] * draw"),
    ),
    *changes(
        "linalg/kernels/rows.py",
        "tests/linalg/test_conditional_mean.py::test_it_is_the_dense_conditional_mean",
        ("step of CG in one call", "p[i] = r[i] + rr / old * p[i]", "p[i] = r[i] + p[i]"),
    ),
    *changes(
        "linalg/kernels/rows.py",
        "tests/graph/test_graph.py::test_components_are_those_of_all_types_together",
        ("root of a component", "parent[max(a, b)] = min(a, b)", "parent[a] = b"),
    ),
    *changes(
        "linalg/kernels/traces.py",
        "tests/linalg/test_logdet.py::test_power_moments_are_traces_of_powers",
        ("trace of the third power", "traces[0] += row[indices[e]] * value", "traces[0] += row[indices[e]]"),
        (
            "trace of S",
            "if indices[e] == i:\n                    partial[block, 0] += value",
            "if False:\n                    partial[block, 0] += value",
        ),
    ),
    *changes(
        "linalg/lanczos.py",
        "tests/linalg/test_lanczos.py::test_full_depth_quadrature_is_exact_for_any_vector",
        ("third term of Lanczos", "-b / b_old if step", "b / b_old if step"),
        ("weights of quadrature", "vectors[:, 0, :] ** 2", "vectors[:, 0, :]"),
    ),
    *changes(
        "linalg/lanczos.py",
        "tests/linalg/test_lanczos.py::test_full_depth_block_quadrature_is_exact",
        (
            "third term of block Lanczos",
            "self.V - self.previous @ self.off[-1].T",
            "self.V + self.previous @ self.off[-1].T",
        ),
        ("size of the first block", "self.R = C * size", "self.R = C"),
    ),
    *changes(
        "linalg/ldl.py",
        "tests/linalg/test_factor.py::test_one_pattern_serves_every_alpha",
        ("pivot of a factor", "own -= entry * value", "own += entry * value"),
    ),
    *changes(
        "linalg/ldl.py",
        "tests/linalg/test_factor.py::test_factor_of_a_precision_is_exact",
        ("diagonal of the inverse", "own += total[rows[e]] * values[e]", "own -= total[rows[e]] * values[e]"),
        ("row of the inverse", "total[k] += diagonal[k] * factor[k]", "total[k] -= diagonal[k] * factor[k]"),
    ),
    *changes(
        "linalg/logdet/exact.py",
        "tests/linalg/test_logdet.py::test_value_and_gradient_are_dense",
        ("ratio of determinants", "self.all).sum() - np.log1p", "self.all).sum() + np.log1p"),
        ("slope of the ratio", "np.array([slope[1] - slope[0]])", "np.array([slope[0] - slope[1]])"),
        ("dense ratio", "float(whole - part)", "float(whole + part)"),
        ("dense slope", "slopes[1] - slopes[0]", "slopes[0] - slopes[1]"),
    ),
    *changes(
        "linalg/logdet/stochastic.py",
        "tests/linalg/test_logdet.py::test_lanczos_is_within_four_of_its_own_standard_errors",
        ("moments without the constants", "MOMENT_BUDGET) - null_space.count", "MOMENT_BUDGET)"),
        ("difference of sides", "exact = parts[0].exact - sum", "exact = parts[0].exact + sum"),
        ("standard error of probes", "/ np.sqrt(len(remainder))", "/ len(remainder)"),
    ),
    *changes(
        "linalg/logdet/stochastic.py",
        "tests/linalg/test_logdet.py::test_nodes_that_differ_by_rounding_are_one_node_of_the_polynomial",
        ("nodes that are one", "rcond=1e-10) * root", "rcond=1e-16) * root"),
    ),
    *changes(
        "linalg/null_space.py",
        "tests/linalg/test_logdet.py::test_lanczos_is_within_four_of_its_own_standard_errors",
        ("constants taken out", "Z[:, k] -= self.S.component_sums", "Z[:, k] += self.S.component_sums"),
    ),
    *changes(
        "linalg/resolvent.py",
        "tests/linalg/test_resolvent.py",
        ("what a step carries on", "a * product[:, :, : len(C)]", "product[:, :, : len(C)]"),
        ("substitution back", "G + a * across @ below", "G - a * across @ below"),
    ),
    *changes(
        "linalg/sampling.py",
        "tests/linalg/test_sampling.py::test_variance_from_draws_is_within_its_own_standard_error",
        ("variance from draws", "1 / diagonal[:, 0].astype(float) + mean", "mean"),
    ),
    *changes(
        "linalg/solve.py",
        "tests/linalg/test_cg.py::test_factor_takes_over_where_conjugate_gradients_are_slow",
        ("refinement", "X + factor.solve(B - A @ X)", "X - factor.solve(B - A @ X) + 1e-6 * X"),
    ),
    *changes(
        "field/alpha_interval.py",
        "tests/field/test_profile.py::test_fit_is_the_dense_maximum",
        ("standard error of alpha", "np.sqrt(2 * np.diag(inverse))", "np.sqrt(np.diag(inverse))"),
    ),
    *changes(
        "field/alpha_interval.py",
        "tests/field/test_profile.py::test_standard_errors_are_those_of_the_dense_hessian",
        ("standard error of beta", "2 / m + 2 * slope", "2 / m - 2 * slope"),
    ),
    *changes(
        "field/batch_likelihood.py",
        "tests/field/test_batch_likelihood.py::test_the_mean_over_all_batches_is_the_dense_likelihood_with_its_gradients",
        ("weight of pairs in a batch", "n * (n - 1) / (b * (b - 1))", "n * n / (b * b)"),
        ("correction of squares in a batch", "[0, 0, w - c]", "[0, 0, c - w]"),
    ),
    *changes(
        "field/coefficients.py",
        "tests/field/test_conditional.py::test_a_fitted_mean_adds_its_own_uncertainty",
        ("pull of the design", "0.0, self.design - self", "0.0, self.design + self"),
    ),
    *changes(
        "field/coefficients.py",
        "tests/field/test_prior.py::test_labels_that_came_later_move_coefficients_with_a_prior_too",
        ("prior of a change", "pulled[self.prior > 0] -= self", "pulled[self.prior > 0] += self"),
    ),
    *changes(
        "field/coefficients.py",
        "tests/field/test_prior.py::test_means_deviations_and_leave_one_out_are_those_of_the_explicit_gaussian",
        ("precision of the prior", "self.products) + np.diag(self.prior)", "self.products)"),
    ),
    *changes(
        "field/profile.py",
        "tests/field/test_prior.py::test_the_plain_likelihood_and_the_coefficients_are_dense",
        ("determinant of the prior", "_gaussian(found.q, self.n) + found.prior_logdet", "_gaussian(found.q, self.n)"),
    ),
    *changes(
        "linalg/ridge.py",
        "tests/linalg/test_ridge.py::test_a_basis_is_made_of_the_columns",
        ("columns without the free ones", "= -T @ over", "= T @ over"),
    ),
    *changes(
        "linalg/ridge.py",
        "tests/linalg/test_ridge.py::test_coefficients_and_leverage_are_those_of_the_normal_equations",
        ("leverage of a ridge", "W @ found.inverse, W)", "W, W)"),
    ),
    *changes(
        "linalg/variance_components.py",
        "tests/linalg/test_ridge.py::test_no_other_prior_is_more_likely",
        ("slope of a prior variance", "member - first * squares) * slope", "member - 0.99 * first * squares) * slope"),
    ),
    *changes(
        "field/conditional.py",
        "tests/field/test_conditional.py::test_beta_scales_draws_by_its_root",
        ("size of draws", ".T / np.sqrt(self.beta)", ".T / self.beta"),
    ),
    *changes(
        "field/conditional.py",
        "tests/field/test_conditional.py::test_a_fitted_mean_adds_its_own_uncertainty",
        ("uncertainty of the coefficients", "value += self.coefficients.variance", "pass"),
    ),
    *changes(
        "field/correlation.py",
        "tests/field/test_profile.py::test_fit_is_the_dense_maximum",
        ("degrees of freedom", "chdtrc(p, max", "chdtrc(p + 1, max"),
    ),
    *changes(
        "field/profile.py",
        "tests/field/test_profile.py::test_coefficients_are_generalised_least_squares",
        ("correction of beta", "return self.freedom / found.q if", "return self.n / found.q if"),
    ),
    *changes(
        "field/correlation.py",
        "tests/field/test_profile.py::test_without_a_likelihood_to_ask_an_interval_is_symmetric_in_the_inverse_hyperbolic_tangent",
        ("Wald interval", "* stderr / (1 - alpha**2)", "* stderr"),
    ),
    *changes(
        "field/fixed_beta.py",
        "tests/test_estimator.py::test_propagation_spends_a_level_of_each_component_with_a_label",
        ("free levels of propagation", "free = graph.count_components(labelled)", "free = 0"),
    ),
    *changes(
        "field/fixed_beta.py",
        "tests/test_estimator.py::test_no_correlation_is_least_squares",
        ("free coefficients of a given alpha", "return max(float(n) - free, 1) / q", "return float(n) / q"),
    ),
    *changes(
        "field/fixed_beta.py",
        "tests/field/test_prior.py::test_a_beta_without_correlation_counts_what_the_prior_takes",
        ("misfit of the prior", "q += design.misfit", "q += 0"),
    ),
    *changes(
        "field/fitted.py",
        "tests/test_predictor.py",
        ("residuals under other features", "own.residual - (found.base - own.base)", "own.residual"),
        ("features of the fit", "same_features(X := self.check_alike(self.graph, X)[1], self.X)", "True"),
    ),
    *changes(
        "field/leave_one_out.py",
        "tests/field/test_conditional.py::test_a_fitted_mean_adds_its_own_uncertainty",
        (
            "leverage of the mean",
            "given.schur_diagonal - (given.coefficients",
            "given.schur_diagonal + (given.coefficients",
        ),
    ),
    *changes(
        "field/leave_one_out.py",
        "tests/field/test_conditional.py::test_mean_variance_and_leave_one_out_are_dense",
        ("variance of a label left out", "1 / (given.beta * safe)", "1 / (2 * given.beta * safe)"),
    ),
    *changes(
        "field/leave_one_out.py",
        "tests/field/test_conditional.py::test_limit_of_a_lone_label_has_no_finite_variance",
        ("lone label", "lone = precision <= 1e-9", "lone = precision <= -1"),
    ),
    *changes(
        "field/likelihood.py",
        "tests/field/test_likelihood.py::test_omega_and_its_gradients_are_dense",
        ("slope in alpha", "np.array([-self.rows.inner(full, S @ full)", "np.array([self.rows.inner(full, S @ full)"),
        ("slope in beta", "beta=q - n / beta", "beta=q + n / beta"),
        ("slope in residuals", "residual=2 * beta * self", "residual=beta * self"),
        ("log beta", "value=beta * q - n * np.log(beta)", "value=beta * q + n * np.log(beta)"),
    ),
    *changes(
        "field/out_of_sample.py",
        "tests/field/test_out_of_sample.py",
        ("misfit of labels learned from in beta", "misfit[k] -= given", "misfit[k] -= 0 * given"),
        ("ambiguity of an average", "return variance * spared * tails,", "return variance * tails,"),
        (
            "tails of errors in beta",
            "scores = np.abs(errors[hidden.T & safe",
            "scores = np.abs(errors[~hidden.T & safe",
        ),
        ("levels of propagation in beta", "len(V) - _new_levels(known, given)", "len(V)"),
        ("uncertainty of beta", "beta = 1 / (variance + RELATIVE_VARIANCE / count", "beta = 1 / (variance + 0"),
    ),
    *changes(
        "field/precision.py",
        "tests/field/test_conditional.py::test_alpha_for_other_edge_types_is_refused",
        ("surplus edge type", "if missing or len(alpha) != len(graph.edge_types):", "if missing:"),
    ),
    *changes(
        "field/prediction.py",
        "tests/test_later_labels.py::test_a_linear_base_answers_as_kriging_with_all_labels",
        ("base that follows later labels", "base=self.base + shift", "base=self.base"),
    ),
    *changes(
        "field/prediction.py",
        "tests/test_later_labels.py::test_of_a_network_each_start_speaks_for_the_labels_it_has_not_seen",
        ("labels left out by members", "total / np.maximum(count, 1), error)", "total, error)"),
    ),
    *changes(
        "field/prediction.py",
        "tests/test_estimator.py::test_samples_of_nodes_that_no_label_reaches_have_the_predicted_spread",
        (
            "spread of nodes that no label reaches",
            "np.sqrt(self.marginal_variance) * noise",
            "self.marginal_variance * noise",
        ),
    ),
    *changes(
        "field/prediction.py",
        "tests/io/test_tables.py::test_predictions_add_up",
        ("upper end in a table", '"upper": mean + margin', '"upper": mean + self.std'),
        ("lower end in a table", '"lower": mean - margin', '"lower": mean - self.std'),
    ),
    *changes(
        "field/profile.py",
        "tests/field/test_profile.py",
        ("restricted likelihood", "self.counted) + self.restricted * found.logdet", "self.counted)"),
        ("slope of the restricted likelihood", "(pulls + traces", "(pulls - traces"),
        ("rank, not columns", "self.freedom = self.n - self.rank", "self.freedom = self.n - self.columns"),
    ),
    *changes(
        "field/profile.py",
        "tests/field/test_profile.py::test_fit_is_the_dense_maximum",
        (
            "unit of the likelihood",
            "/ 2 - self.n * float(np.log(self.size))",
            "/ 2 + self.n * float(np.log(self.size))",
        ),
    ),
    *changes(
        "field/quadratic_form.py",
        "tests/field/test_likelihood.py::test_form_is_dense_for_many_alphas",
        ("quadratic form", "a * self.linear - a * a * inner", "a * self.linear - a * inner"),
    ),
    *changes(
        "field/quadratic_form.py",
        "tests/field/test_likelihood.py::test_slopes_are_those_of_the_form",
        ("slope of the quadratic form", "(-self.linear - a * inner)", "(-self.linear + a * inner)"),
    ),
    *changes(
        "field/search.py",
        "tests/field/test_numerical_edges.py::test_what_probes_cannot_tell_is_not_told",
        ("noise of probes", "profile.omega(a) < 4 * noise", "profile.omega(a) < -4 * noise"),
    ),
    *changes(
        "field/training_loss.py",
        "tests/field/test_training_loss.py::test_the_paper_follows_the_slope_of_the_dense_likelihood_in_alpha_and_beta",
        ("slope of the paper in beta", "found.beta * beta)", "found.beta)"),
    ),
    *changes(
        "field/training_loss.py",
        "tests/field/test_training_loss.py::test_a_batch_of_the_paper_is_pulled_by_beta_times_the_quadratic_form",
        ("beta in the paper's batches", "return 2 * np.exp(self.b) * Gr / len(r)", "return 2 * Gr / len(r)"),
    ),
    *changes(
        "field/training_loss.py",
        "tests/field/test_training_loss.py::test_the_loss_is_the_dense_likelihood_at_its_best_beta",
        ("best beta in the training loss", "return value, 2 * Gr / self._q", "return value, Gr / self._q"),
    ),
]
PLACES = [*MATHEMATICS, *SHELL]
