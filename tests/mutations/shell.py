"""Places around the mathematics: graphs, bases, files, pages, the cluster, commands and the paper's experiments."""

from tests.mutations.mutation import changes

SHELL = [
    *changes(
        "graph/adjacency.py",
        "tests/graph/test_adjacency.py::test_from_edges_equals_a_loop_over_rows",
        ("weights of zero", "    F.eliminate_zeros()\n", ""),
    ),
    *changes(
        "graph/adjacency.py",
        "tests/graph/test_readers.py::test_symmetrize_combines_a_matrix_with_its_transpose",
        ("mean of both directions", "return (F + B) * 0.5", "return F + B"),
    ),
    *changes(
        "graph/adjacency.py",
        "tests/graph/test_adjacency.py::test_self_loops_are_kept_or_dropped",
        ("self-loops left out", "rows.take(rows.source != rows.target)", "rows"),
    ),
    *changes(
        "graph/adjacency.py",
        "tests/graph/test_adjacency.py::test_directions_that_disagree_are_refused",
        ("weights that disagree", "abs(F - B) > F.maximum(B) * AGREE", "abs(F - B) > 1e9 * F.maximum(B)"),
    ),
    *changes(
        "graph/alignment.py",
        "tests/graph/test_alignment.py",
        ("rows of nodes", "order[found] = np.arange(len(found))", "order = found.copy()"),
        ("an id that is no node", "or (found < 0).any() or", "or"),
        ("an id that is there twice", "or (np.bincount(found) > 1).any()", ""),
        ("tables that contradict each other", "moved is not None and bare is not None", "False"),
        ("a default index beside numbers", "(numbers[1:] < numbers[:-1]).any()", "False"),
        ("a named index is ids", " and index.name is None", ""),
    ),
    *changes(
        "graph/ids.py",
        "tests/graph/test_adjacency.py::test_from_edges_equals_a_loop_over_rows",
        ("place of an integer id", "table[nodes - low] = np.arange(len(nodes))", "table[nodes - low] = nodes - low"),
    ),
    *changes(
        "graph/ids.py",
        "tests/graph/test_ids.py::test_nodes_that_are_repeated_or_missing_are_refused",
        ("node named twice", "row = first(codes != np.arange(len(codes)))", "row = None"),
    ),
    *changes(
        "bases/base.py",
        "tests/bases/networks/test_network_base.py::test_enough_members_hold_out_folds_and_give_out_of_fold_residuals",
        (
            "mean of the members that did not see",
            "np.where(count > 0, (values * chosen).sum(axis=0) / np.maximum(count, 1), np.nan)",
            "np.where(count > 0, values.mean(axis=0), np.nan)",
        ),
    ),
    *changes(
        "bases/base.py",
        "tests/bases/test_base.py::test_columns_that_are_constant_to_rounding_keep_their_size",
        ("constant columns", "np.where(spread > 0, spread, constant)", "spread"),
    ),
    *changes(
        "bases/linear.py",
        "tests/bases/test_linear.py::test_out_of_fold_errors_are_those_of_fits_without_each_label",
        (
            "leverage of out-of-fold errors",
            "/ np.maximum(1 - independent.leverage, 1e-6)",
            "/ 1",
        ),
    ),
    *changes(
        "bases/splines.py",
        "tests/bases/test_splines.py::test_bends_are_smooth_and_straight_beyond_the_last_knots",
        ("line beyond the knots", "curve(inside) + curve(inside, 1) * (x - inside)[:, None]", "curve(x)"),
    ),
    *changes(
        "bases/splines.py",
        "tests/bases/test_splines.py::test_roughness_of_bends_is_the_square_of_their_coefficients",
        ("roughness of a spline", "(h[:-1] + h[1:]) / 3", "(h[:-1] + h[1:]) / 4"),
    ),
    *changes(
        "bases/splines.py",
        "tests/bases/test_splines.py::test_with_many_features_each_has_fewer_bends_and_with_very_many_none",
        ("bends of many features", "2 + MOST_BENDS //", "2 + 2 * MOST_BENDS //"),
    ),
    *changes(
        "bases/neighbours.py",
        "tests/bases/test_neighbours.py::test_columns_are_powers_of_the_neighbour_mean",
        ("mean over neighbours", "total = self.root * (self.S @ (self.root * X))", "total = self.S @ (self.root * X)"),
        ("logarithm of degrees", "np.log1p(getattr", "np.log(1e-300 + getattr"),
    ),
    *changes(
        "bases/neighbours.py",
        "tests/bases/test_neighbours.py::test_columns_are_those_of_the_fit",
        (
            "columns of neighbour features",
            "like = (self.n_features_in_, names)",
            "like = None and (self.n_features_in_, names)",
        ),
    ),
    *changes(
        "bases/networks/base.py",
        "tests/bases/networks/test_network_base.py::test_a_member_learns_from_no_label_that_counts_as_out_of_its_sample",
        ("labels kept from a member", "fit = np.setdiff1d(task.labels, out_of_sample)", "fit = task.labels"),
    ),
    *changes(
        "bases/networks/base.py",
        "tests/bases/networks/test_training.py::test_paper_training_reports_where_its_own_steps_ended",
        ("unit of beta in the paper's training", "/ self.y_spread**2", "/ self.y_spread"),
    ),
    *changes(
        "bases/networks/base.py",
        "tests/bases/networks/test_network_base.py::test_enough_members_hold_out_folds_and_give_out_of_fold_residuals",
        (
            "out-of-fold residuals",
            "residual, residuals = out_of_fold, np.tile",
            "residual, residuals = residual, np.tile",
        ),
    ),
    *changes(
        "bases/networks/layers.py",
        "tests/bases/networks/test_layers.py::test_layers_are_those_of_pyg_in_value_and_gradient",
        ("mean with the node itself", "(x + degree * self._mean(x)) / (degree + 1)", "(x + self._mean(x)) / 2"),
        ("shared maxima", "gradients[0] / reached.clamp(min=1)", "gradients[0]"),
    ),
    *changes(
        "bases/networks/stack.py",
        "tests/bases/networks/test_stack.py::test_members_trained_together_are_those_trained_one_by_one",
        ("weights of one network of a stack", "value.detach()[k] for value", "value.detach()[0] for value"),
    ),
    *changes(
        "bases/stopping.py",
        "tests/bases/test_stopping.py::test_a_label_is_judged_at_the_best_step_of_the_others",
        ("labels judged at the step that they chose", "(sums.sum() - sums) /", "(sums.sum() - 0 * sums) /"),
    ),
    *changes(
        "bases/stopping.py",
        "tests/bases/networks/test_training.py::test_ctrl_c_leaves_the_best_network_so_far",
        ("best network kept", "if not value < self.lowest:", "if False:"),
    ),
    *changes(
        "bases/networks/training.py",
        "tests/bases/networks/test_network_base.py::test_errors_left_out_are_those_of_each_network_by_itself",
        (
            "labels that a network stops on",
            "corrected = prediction[self.out_of_sample] + self.criterion.correction()[self.out_of_sample]",
            "corrected = prediction[self.out_of_sample]",
        ),
    ),
    *changes(
        "bases/networks/training.py",
        "tests/bases/networks/test_checkpoint.py::test_a_training_killed_after_any_step_ends_in_the_same_file",
        ("training that has ended", "while not self.done and advance():", "while advance():"),
    ),
    *changes(
        "bases/networks/training.py",
        "tests/bases/networks/test_network_base.py::test_fine_tuning_learns_what_is_new_on_another_graph_and_leaves_the_first_model",
        (
            "batch of the paper",
            "(batch, -loss.batch_slope(batch, r[batch]))",
            "(batch, loss.batch_slope(batch, r[batch]))",
        ),
    ),
    *changes(
        "bases/trees/boosting.py",
        "tests/bases/test_trees.py::test_a_booster_does_not_see_the_labels_of_its_fold",
        ("folds of boosters", "(self.fold[:, None] != np.arange(self.boosters))", "(self.fold[:, None] >= 0)"),
    ),
    *changes(
        "bases/backfitting.py",
        "tests/bases/test_backfitting.py::test_a_fit_without_a_fold_is_given_targets_that_know_nothing_of_it",
        ("folds of targets", "self.fold[:, None] != np.arange(self.folds + 1)", "self.fold[:, None] >= 0"),
    ),
    *changes(
        "bases/scikit.py",
        "tests/bases/test_scikit.py::test_a_random_state_that_is_set_stays_as_it_is",
        ("random state of one's own", '"random_state" and v is None]', '"random_state"]'),
    ),
    *changes(
        "bases/scikit.py",
        "tests/bases/test_scikit.py::test_residuals_are_those_of_fits_without_their_fold",
        (
            "folds of residuals",
            "seeded(self.estimator, rng).fit(take_rows(X, train), y[train])",
            "seeded(self.estimator, rng).fit(X, y)",
        ),
    ),
    *changes(
        "io/model_file/correlation.py",
        "tests/io/test_model_file.py::test_steps_that_a_fit_deepened_are_used_again",
        (
            "deepened steps in a file",
            "seen.effort[0], replace(strategy, steps=seen.effort[1])",
            "seen.effort[0], strategy",
        ),
    ),
    *changes(
        "io/model_file/correlation.py",
        "tests/io/test_model_file.py::test_a_file_of_the_first_version_gets_its_beta_corrected",
        ("beta of old files", 'factor = field.beta / scalars["beta"]', "factor = 1.0"),
    ),
    *changes(
        "io/model_file/model.py",
        "tests/test_parameters.py::test_no_parameter_changed_after_the_fit_changes_what_was_fitted",
        ("seed of the fit in a file", '"random_state": field.random_state', '"random_state": model.random_state'),
    ),
    *changes(
        "io/tables/columns.py",
        "tests/io/test_tables.py::test_a_column_counts_as_numbers_where_at_least_half_of_its_cells_are",
        ("half of a column", ".sum() >= len(known)", ".sum() > len(known)"),
    ),
    *changes(
        "io/tables/graphs.py",
        "tests/io/test_tables.py::test_unknown_nodes_may_be_skipped",
        ("edges kept", "kept = np.logical_and(*known)", "kept = np.logical_or(*known)"),
    ),
    *changes(
        "io/tables/graphs.py",
        "tests/cli/test_fit.py::test_predict_takes_labels_that_came_after_the_fit",
        ("labels by id", "y[at] = labels", "y[: len(labels)] = labels"),
    ),
    *changes(
        "io/tables/graphs.py",
        "tests/io/test_tables.py::test_rows_follow_the_nodes_of_a_model",
        ("rows by id", "pd.DataFrame(table).iloc[rows].set_axis", "pd.DataFrame(table).set_axis"),
    ),
    *changes(
        "io/tables/predictions.py",
        "tests/cli/test_app.py::test_a_wrong_command_ends_in_one_line",
        ("input as output", "if path.exists() and any(path.samefile(other) for other in others):", "if False:"),
    ),
    *changes(
        "io/tables/recipe.py",
        "tests/io/test_tables.py::test_empty_cells_take_the_median_or_a_value_of_their_own",
        ("median of a column", "np.nanmedian(nodes", "np.nanmean(nodes"),
    ),
    *changes(
        "io/tables/recipe.py",
        "tests/io/test_tables.py::test_text_is_used_where_its_values_occur_twice_on_average",
        ("most values of text", "len(nodes.frame) // 2)", "len(nodes.frame))"),
    ),
    *changes(
        "views/contents.py",
        "tests/views/page/test_html.py::test_the_interval_of_a_node_is_the_models",
        (
            "interval on the page",
            "return self.final + self.half_width",
            "return self.final + self.std",
        ),
    ),
    *changes(
        "views/contents.py",
        "tests/views/page/test_html.py::test_the_layers_hold_the_numbers_of_the_model",
        (
            "correction on the page",
            "np.where(self.asked, self.own.left_out_mean - self.base, np.nan)",
            "np.where(self.asked, self.base - self.own.left_out_mean, np.nan)",
        ),
    ),
    *changes(
        "views/page/charts.py",
        "tests/views/page/test_html.py::test_each_edge_is_drawn_once_from_end_to_end",
        (
            "ends of an edge on the page",
            "drawing.xy[edges.row], drawing.xy[edges.col]",
            "drawing.xy[edges.row], drawing.xy[edges.row]",
        ),
        ("edges drawn once", 'sparse.triu(graph.adjacency(kind), k=1, format="coo")', "graph.adjacency(kind).tocoo()"),
    ),
    *changes(
        "views/page/drawing.py",
        "tests/views/page/test_html.py::test_longitude_and_latitude_of_the_node_table_make_a_map",
        ("proportions of a map", "xy / [figures.stretch(xy, geographic), 1]", "xy"),
    ),
    *changes(
        "views/page/html.py",
        "tests/views/page/test_html.py::test_rows_are_the_largest_corrections_first",
        ("largest corrections first", 'np.argsort(-size, kind="stable")', 'np.argsort(size, kind="stable")'),
    ),
    *changes(
        "views/page/html.py",
        "tests/views/page/test_html.py::test_numbers_are_short",
        (
            "minus signs",
            'return text.replace("-", MINUS) if float(value) else "0"',
            'return text if float(value) else "0"',
        ),
    ),
    *changes(
        "views/page/explain.py",
        "tests/views/page/test_explain.py::test_what_the_coefficients_do_is_in_the_lever",
        ("lever of the page", "coefficients.lever @ coefficients.root.T", "coefficients.lever @ coefficients.root"),
    ),
    *changes(
        "bases/trees/kernels.py",
        "tests/views/page/test_explain.py::test_contributions_of_features_add_up_to_the_base",
        ("contributions of splits", "out[i, j] += after - before", "out[i, j] += after"),
    ),
    *changes(
        "views/page/words.py",
        "tests/views/page/test_report_words.py::test_numbers_of_the_first_screen_are_those_of_the_model",
        ("typical error", "np.abs(error[known]).mean()", "np.median(np.abs(error[known]))"),
    ),
    *changes(
        "views/positions.py",
        "tests/views/test_figures_of_nodes.py::test_a_path_is_drawn_in_its_order",
        ("springs of a layout", "stretch = 1 - 1 / np.maximum", "stretch = -1 + 1 / np.maximum"),
    ),
    *changes(
        "views/positions.py",
        "tests/views/test_figures_of_nodes.py::test_no_component_lies_over_another",
        ("rows of components", "top = -np.cumsum(", "top = 0 * np.cumsum("),
    ),
    *changes(
        "backends/dask/blocks.py",
        "tests/backends/dask/test_dask.py::test_mean_and_variance_are_those_of_one_machine_with_the_same_noise",
        (
            "places of a halo",
            "np.concatenate([np.arange(first, first + rows), halo])",
            "np.concatenate([np.arange(rows), halo])",
        ),
    ),
    *changes(
        "backends/dask/exchange.py",
        "tests/backends/dask/test_dask.py::test_the_kth_smallest_is_found_without_gathering",
        ("rank inside a cell", "k - int(counts[here])", "k"),
    ),
    *changes(
        "backends/dask/exchange.py",
        "tests/backends/dask/test_dask.py::test_members_that_are_out_of_step_raise_an_error",
        ("members out of step", "if theirs < step or (theirs == step and name != operation):", "if theirs < step:"),
    ),
    *changes(
        "backends/dask/exchange.py",
        "tests/backends/dask/test_dask.py::test_lanczos_takes_the_same_steps_as_on_one_machine",
        ("sum over members", "finish(np.sum(parts, axis=0))", "finish(parts[0])"),
    ),
    *changes(
        "backends/dask/matrix.py",
        "tests/backends/dask/test_dask.py::test_a_product_equals_that_of_one_machine",
        ("rows of a halo", "ids - starts[owner]", "ids - starts[owner] - 1"),
    ),
    *changes(
        "backends/dask/matrix.py",
        "tests/backends/dask/test_dask.py::test_the_halo_of_a_submatrix_shrinks_with_it",
        ("halo of a submatrix", "needed[n:] &= np.bincount(A.indices, minlength=len(needed))[n:] > 0", "pass"),
    ),
    *changes(
        "backends/dask/matrix.py",
        "tests/backends/dask/test_dask.py::test_components_and_their_eigenvectors_are_those_of_one_machine",
        (
            "components across members",
            "inside[across] = self.rows.sum(np.bincount(joined, inside[across], total))[joined]",
            "pass",
        ),
    ),
    *changes(
        "backends/dask/model.py",
        "tests/backends/dask/test_dask.py::test_mean_and_variance_are_those_of_one_machine_with_the_same_noise",
        (
            "base added on Dask",
            "mean = sum(base, conditional.conditional_mean(r))",
            "mean = conditional.conditional_mean(r)",
        ),
    ),
    *changes(
        "backends/dask/noise.py",
        "tests/backends/dask/test_noise.py::test_the_covariance_of_noise_is_the_identity_minus_alpha_s",
        ("sign of hashed noise", "1.0 if ids[i] == low else -np.sign(m)", "1.0 if ids[i] == low else -1.0"),
        ("own part of hashed noise", "out[i, k] = total + own *", "out[i, k] = total + 0.9 * own *"),
    ),
    *changes(
        "backends/dask/output.py",
        "tests/backends/dask/test_dask.py::test_an_old_result_is_put_back_where_the_new_one_cannot_be_moved_into_place",
        ("old result put back", "            if old.exists():\n                os.rename(old, target)\n", ""),
    ),
    *changes(
        "backends/dask/output.py",
        "tests/backends/dask/test_dask.py::test_what_a_killed_worker_left_half_written_is_no_part_of_the_result",
        ("half-written parts", "for stray in set(folder.iterdir()) - set(files):", "for stray in ():"),
    ),
    *changes(
        "backends/dask/pipeline.py",
        "tests/backends/dask/test_dask.py::test_fit_from_tables_is_that_of_one_machine",
        (
            "labels of all blocks in R2",
            "r2_of_errors(y[labelled], found.out_of_sample_error, graph.rows)",
            "r2_of_errors(y[labelled], found.out_of_sample_error)",
        ),
        (
            "labels of all blocks in a width",
            "jackknife_quantile(found.scores, coverage, graph.rows)",
            "jackknife_quantile(found.scores, coverage)",
        ),
    ),
    *changes(
        "backends/dask/tables.py",
        "tests/backends/dask/test_dask.py::test_a_graph_from_parquet_is_that_of_one_machine",
        (
            "edges to both blocks",
            '[[side[side["source"].between(a, b, "left")] for side in (rows, turned)]',
            '[[side[side["source"].between(a, b, "left")] for side in (rows, rows)]',
        ),
        (
            "rows cut from partitions",
            "begins = [first - self.starts[those[0]]",
            "begins = [0 * first - 0 * self.starts[those[0]]",
        ),
    ),
    *changes(
        "cli/predict.py",
        "tests/cli/test_fit.py::test_a_wider_coverage_gives_wider_intervals",
        (
            "coverage of the command",
            "prediction_table(fitted, data, coverage, later, left_out)",
            "prediction_table(fitted, data, 0.9, later, left_out)",
        ),
    ),
    *changes(
        "cli/predict.py",
        "tests/cli/test_fit.py::test_predict_writes_a_line_for_each_node",
        (
            "labels counted by the command",
            'known = int(table["known"].sum())',
            'known = int((~table["known"]).sum())',
        ),
    ),
    *changes(
        "cli/options.py",
        "tests/cli/test_fit.py::test_names_with_commas_go_in_quotes",
        (
            "names in quotes",
            "tuple(name for part in next(csv.reader([text], skipinitialspace=True), []) if (name := part.strip()))",
            'tuple(text.split(","))',
        ),
    ),
    *changes(
        "cli/options.py",
        "tests/cli/test_app.py::test_numbers_that_are_not_finite_become_null_in_json",
        (
            "numbers that are not finite in JSON",
            "return None if isinstance(value, float) and not math.isfinite(value) else value",
            "return value",
        ),
    ),
    *changes(
        "cli/scheduler.py",
        "tests/backends/dask/test_dask.py::test_the_command_writes_predictions_and_tells_what_it_learned",
        ("weights given to a cluster", '("target", "weight", "skip_unknown")', '("target", "skip_unknown")'),
    ),
    *changes(
        "reproduction/datasets/ising.py",
        "tests/reproduction/datasets/test_ising.py::test_spins_follow_the_exact_distribution",
        ("sign of a coupling", "coupling * around[:, half]", "abs(coupling) * around[:, half]"),
    ),
    *changes(
        "reproduction/datasets/scaling.py",
        "tests/reproduction/datasets/test_scaling.py::test_standardised_columns_have_mean_0_and_deviation_1",
        ("standardised columns", "(table - centre) / spread.where", "table / spread.where"),
    ),
    *changes(
        "reproduction/datasets/routes.py",
        "tests/reproduction/datasets/test_routes.py::test_trips_of_any_length_are_betweenness",
        ("shares of equal routes", "onward[v] * (routes[tail[e]] / routes[v])", "onward[v]"),
    ),
    *changes(
        "reproduction/figures/accuracy.py",
        "tests/reproduction/test_figures.py::test_the_error_over_runs_is_the_root_of_the_mean_square",
        ("root mean square", "np.sqrt(np.mean(errors**2, axis=0))", "np.mean(np.abs(errors), axis=0)"),
    ),
    *changes(
        "reproduction/figures/small_world.py",
        "tests/reproduction/test_figures.py::test_a_small_world_has_every_edge_once_and_no_loop",
        ("edges of a small world once", "keep = source != target", "keep = source >= 0"),
    ),
    *changes(
        "reproduction/julia.py",
        "tests/reproduction/test_julia.py::test_a_permutation_is_that_of_julia",
        ("numbers drawn again", "if drawn < n:", "if drawn <= n:"),
    ),
    *changes(
        "reproduction/neighbour_labels.py",
        "tests/reproduction/test_neighbour_labels.py::test_labels_around_a_node_are_features_without_its_own",
        ("ways back", "two = A @ one - back * both", "two = A @ one"),
    ),
    *changes(
        "reproduction/runs.py",
        "tests/reproduction/test_runs.py::test_what_another_version_wrote_is_done_again",
        ("records of another version", 'if found["residua"] != __version__:', "if False:"),
    ),
    *changes(
        "reproduction/runs.py",
        "tests/reproduction/test_runs.py::test_a_line_after_a_torn_one_is_a_line_of_its_own",
        ("torn line", 'file.write(b"\\n" * torn + ', 'file.write(b"" + '),
    ),
    *changes(
        "reproduction/sets.py",
        "tests/reproduction/test_sets.py::test_what_rounding_leaves_of_zero_counts_as_positive",
        ("ties at zero", "metrics.sign_accuracy(y, prediction + ROUNDING)", "metrics.sign_accuracy(y, prediction)"),
    ),
    *changes(
        "reproduction/spins.py",
        "tests/reproduction/test_spins.py::test_mean_spins_are_those_of_all_states_written_out",
        ("clamped spins", "CLAMPED * np.nan_to_num(known)", "np.nan_to_num(known)"),
    ),
    *changes(
        "reproduction/splits.py",
        "tests/reproduction/test_splits.py::test_the_parts_of_a_split_are_all_nodes_once",
        ("share of a split", "train = math.ceil(share * n)", "train = math.floor(share * n)"),
    ),
    *changes(
        "reproduction/summary.py",
        "tests/reproduction/test_summary.py::test_text_shows_ours_theirs_and_the_difference",
        ("spread over seeds", "ddof=min(1, len(values) - 1)", "ddof=0"),
    ),
    *changes(
        "datasets/elect80.py",
        "tests/test_datasets.py::test_fips_codes_keep_their_zeros",
        ("codes with zeros before them", 'dtype={"fips": str, ', "dtype={"),
    ),
    *changes(
        "atomic.py",
        "tests/io/test_model_file.py::test_a_link_and_the_mode_of_the_old_file_are_kept",
        ("mode of the old file", "shutil.copymode(target, temporary)", "pass"),
    ),
    *changes(
        "average.py",
        "tests/test_average.py::test_the_jackknife_width_is_that_of_the_weighted_errors",
        ("weights in the width of an average", "np.abs(self.weights @ error)", "np.abs(error.mean(axis=0))"),
    ),
    *changes(
        "average.py",
        "tests/test_average.py::test_a_model_that_was_trained_on_every_label_is_told",
        ("warning of an average", "if any(field.in_sample for field in fields):", "if False:"),
    ),
    *changes(
        "graph/graph.py",
        "tests/test_average.py::test_few_common_labels_count_as_the_same_error",
        ("edge types of an average", "if a is b or a.edge_types != b.edge_types:", "if a is b:"),
    ),
    *changes(
        "average.py",
        "tests/test_average.py::test_the_variance_is_that_of_a_sum_of_correlated_errors",
        (
            "correlation of errors in an average",
            'np.einsum("ki,kl,li->i", weighted, self.correlation_, weighted)',
            "(weighted**2).sum(axis=0)",
        ),
    ),
    *changes(
        "comparison.py",
        "tests/test_comparison.py::test_means_and_spreads_are_those_of_a_sample_of_splits",
        ("spread over splits", "np.std(self.values(score), ddof=1)", "np.std(self.values(score))"),
    ),
    *changes(
        "diagnosis.py",
        "tests/backends/dask/test_dask.py::test_fit_from_tables_is_that_of_one_machine",
        ("mean of the labels in R2", "deviation = labels - total / count", "deviation = labels"),
    ),
    *changes(
        "diagnosis.py",
        "tests/test_diagnosis.py::test_diagnosis_is_silent_on_labels_of_the_model",
        ("intervals that are off", "max(3 * np.sqrt(promised * (1 - promised) / n), tenth)", "tenth"),
    ),
    *changes(
        "graph/regions.py",
        "tests/test_diagnosis.py::test_diagnosis_tells_of_labels_missing_by_region_and_not_at_random",
        ("labels missing by region", "unknown - left_out > max(4 * chance, 0.1)", "unknown - left_out > 4"),
    ),
    *changes(
        "graph/regions.py",
        "tests/graph/test_regions.py::test_each_missing_region_is_found_with_its_size",
        ("corners of a missing region", "<= 2 * far", "<= far"),
    ),
    *changes(
        "field/leave_block_out.py",
        "tests/field/test_leave_block_out.py",
        ("one block more", "1 + self.share / number", "1"),
        ("influence of a block", "self.theta - _solved", "0 * self.theta - 0 * _solved"),
        ("blocks alike", "self.share / sizes[block] / number", "self.share / len(block) * sizes[block] ** 0"),
    ),
    *changes(
        "intervals.py",
        "tests/test_intervals.py::test_jackknife_plus_is_the_quantile_of_models_without_each_fold",
        ("lower ends of jackknife+", "count - rank, axis=0)[count - rank]", "0, axis=0)[0]"),
    ),
    *changes(
        "intervals.py",
        "tests/test_average.py::test_the_jackknife_width_is_that_of_the_weighted_errors "
        "tests/backends/dask/test_dask.py::test_fit_from_tables_is_that_of_one_machine",
        ("rank of a jackknife width", "(count + 1) * coverage))\n    widest", "count * coverage))\n    widest"),
    ),
    *changes(
        "metrics/scores.py",
        "tests/test_metrics.py::test_interval_score_is_lowest_for_the_interval_it_asks_for",
        ("penalty of a miss", "2 / (1 - coverage) * miss", "1 / (1 - coverage) * miss"),
    ),
    *changes(
        "metrics/morans_i.py",
        "tests/test_metrics.py::test_morans_i_and_its_z_score_equal_full_enumeration_of_permutations",
        ("variance of Moran's I", "S2 = 4 * np.sum", "S2 = 2 * np.sum"),
    ),
    *changes(
        "nn.py",
        "tests/test_nn.py::test_labels_and_predictions_that_are_not_finite_are_refused_under_the_mask",
        ("labels that a module corrects by", "_check_finite(torch.as_tensor((labels - base)[self.labelled]))", "pass"),
    ),
    *changes(
        "nn.py",
        "tests/test_nn.py::test_loss_is_the_dense_likelihood_a_label",
        ("loss a label of a module", "torch.stack(columns).sum() / (self", "torch.stack(columns).sum() + 0 * (self"),
    ),
    *changes(
        "predictor.py",
        "tests/test_predictor.py::test_the_features_of_the_fit_and_none_score_alike",
        ("labels of the fit in a score", "np.isnan(self._labels_on(there))", "True"),
    ),
    *changes(
        "predictor.py",
        "tests/test_estimator.py::test_score_counts_only_labels_the_model_has_not_seen",
        (
            "labels that were seen in a score",
            "unseen = ~np.isnan(truth) & np.isnan(self._labels_on(there))",
            "unseen = ~np.isnan(truth)",
        ),
    ),
    *changes(
        "predictor.py",
        "tests/test_predictor.py::test_a_copy_of_the_training_graph_does_not_hide_its_labels",
        ("labels of the fit on a copy of its graph", "both = unseen & ~np.isnan(self.y_)", "both = unseen & False"),
    ),
    *changes(
        "predictor.py",
        "tests/test_estimator.py::test_another_graph_is_conditioned_on_its_own_labels_without_refitting",
        ("labels given to a score", 'unseen &= np.isnan(check_values(known, there, "known"))', "pass"),
    ),
    *changes(
        "field/fitted.py",
        "tests/test_grown_graphs.py",
        ("numbered nodes of another graph", "if numbered and not graph.grown:", "if False:"),
        ("residuals on a grown graph", "own.residual - (found.base[at] - own.base)", "(y[at] - found.base[at])"),
    ),
    *changes(
        "graph/growth.py",
        "tests/graph/test_growth.py",
        ("weights of a grown graph", "(abs(B.multiply(A != 0) - A) > AGREE * A).nnz", "False"),
    ),
    *changes(
        "model_selection.py",
        "tests/test_model_selection.py::test_hidden_nodes_are_as_far_from_labels_as_unknown_ones",
        ("distances of hidden nodes", "rng.choice(wanted, len(centres)) - 1", "0 * rng.choice(wanted, len(centres))"),
    ),
    *changes(
        "bases/linear.py",
        "tests/test_summarise.py",
        ("intercept in the units of the data", "M[0, 1:] = -self.centre / self.spread", "pass"),
    ),
    *changes(
        "targets.py",
        "tests/test_targets.py::test_draws_of_targets_are_independent",
        ("seeds of targets", "np.random.SeedSequence([random_state, k])", "np.random.SeedSequence([random_state])"),
    ),
    *changes(
        "by_id.py",
        "tests/test_labels_by_id.py::test_numbers_that_may_be_rows_or_ids_are_refused",
        ("numbers that may be rows", "        _refuse_row_numbers(y.index, graph.nodes, name)\n", "        pass\n"),
    ),
]
