"""Golden of cluster-robust tests by bias-reduced linearisation (CR2): R's clubSandwich for the cases of stats_cases.py.

    python tests/golden/generate_stats_cr2.py        # needs Rscript with clubSandwich (Debian: r-cran-clubsandwich)

Each case is a linear model of two factors and their interaction, and the mean alone. R is asked for vcovCR(type = "CR2"),
coef_test and conf_int with test = "Satterthwaite" and Wald_test with test = "HTZ" for each term. Blocks I - H_gg without
full rank occur in every case whose last level of the first factor belongs to one cluster."""

import itertools
import pathlib
import subprocess
import tempfile

import numpy as np

import stats_cases as sc

N_CASES = 220
NAN = float("nan")
R = """
suppressMessages(library(clubSandwich))
number <- function(x) sprintf("%.17g", x)
folder <- commandArgs(TRUE)[1]
out <- file(file.path(folder, "out"), "w")
writeLines(paste0("R ", getRversion(), ", clubSandwich ", packageVersion("clubSandwich")), out)
values <- function(model, clusters) {
  V <- vcovCR(model, cluster = clusters, type = "CR2")
  test <- coef_test(model, V, test = "Satterthwaite")
  interval <- conf_int(model, V, test = "Satterthwaite")
  list(V = V, cells = number(c(rbind(test$SE, test$df_Satt, interval$CI_U, test$p_Satt))))
}
for (path in sort(list.files(folder, "csv$", full.names = TRUE))) {
  data <- as.matrix(read.csv(path, header = FALSE))
  owner <- data[1, -(1:2)]
  y <- data[-1, 1]
  clusters <- data[-1, 2]
  X <- data[-1, -(1:2), drop = FALSE]
  model <- lm(y ~ 0 + X)
  of <- values(model, clusters)
  cells <- c(values(lm(y ~ 1), clusters)$cells, of$cells)
  for (term in 0:2) {
    C <- diag(ncol(X))[owner == term, , drop = FALSE]
    test <- c(NA, NA, NA)
    if (nrow(C) > 0 && kappa(C %*% of$V %*% t(C), exact = TRUE) < 1e5) {
      wald <- try(Wald_test(model, constraints = C, vcov = of$V, test = "HTZ"), silent = TRUE)
      if (!inherits(wald, "try-error") && !is.na(wald$p_val)) test <- c(wald$Fstat, wald$df_denom, wald$p_val)
    }
    cells <- c(cells, number(test))
  }
  writeLines(paste(c(sub(".csv", "", basename(path)), cells), collapse = ","), out)
}
close(out)
"""


def case_inputs(case):
    """y, clusters, the two factors; the mirror image of make() in tests/eval/test_cluster.c."""
    stream = sc.case_stream("cr2", case)
    small = case % 12 == 5
    n, n_clusters = (1 if small else 30) + stream.bounded(90), (1 if small else 10) + stream.bounded(24)
    levels = [(1 if small else 2) + stream.bounded(3), (1 if small else 2) + stream.bounded(2)]
    clusters = np.array([stream.bounded(n_clusters) for _ in range(n)])
    factors = [np.array([stream.bounded(k) for _ in range(n)]) for k in levels]
    if case % 4 == 0:
        factors[0] = clusters % levels[0]
    if case % 5 == 3:  # the last level belongs to one cluster
        factors[0] = np.where(clusters == clusters[0], levels[0] - 1, factors[0] % max(levels[0] - 1, 1))
    y = np.array(sc.values(stream, n, [sc.SCORES, sc.MEANS, sc.BINARY, sc.FINE][case % 4])) + 2.0 * factors[1]
    return y, clusters, factors, levels


def design(case, factors, levels):
    terms = [(0,), (1,), (0, 1)]
    columns, owner = [np.ones(len(factors[0]))], [-1]
    for t, term in enumerate(terms[: 2 + case % 2]):
        for cell in itertools.product(*(range(levels[f]) for f in term)):
            column = np.all([factors[f] == c for c, f in zip(cell, term)], axis=0).astype(float)
            if column.any() and not any(c == factors[f].min() for c, f in zip(cell, term)):
                columns.append(column)
                owner.append(t)
    return np.array(columns).T, owner


def ask_r(folder):
    (folder / "ask.R").write_text(R)
    subprocess.run(["Rscript", str(folder / "ask.R"), str(folder)], check=True)
    head, *lines = (folder / "out").read_text().splitlines()
    rows = [line.split(",") for line in lines]
    return head, {int(row[0]): [NAN if v in ("NA", "NaN") else float(v) for v in row[1:]] for row in rows}


def summarise(found):
    """Sums weighted by 1 for the mean, then 2, 3, ... over the columns; nothing where an error is 0 but for rounding."""
    coefficients = np.array(found[:-9]).reshape(-1, 4)
    weights = np.arange(1, len(coefficients) + 1)
    tests = found[-9:]
    row = [NAN] * 4
    if coefficients[:, 0].min() > 1e-6 * coefficients[:, 0].max():
        row = [*(weights @ coefficients[:, :3]), coefficients[-1, 3]]
    return [*row, *tests[0:3], tests[3], tests[8]]


def main():
    inputs, solvable = sc.FNV_BASIS, []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for case in range(N_CASES):
            y, clusters, factors, levels = case_inputs(case)
            inputs = sc.checksum([*y, *map(float, clusters), *map(float, factors[0]), *map(float, factors[1])], inputs)
            x, owner = design(case, factors, levels)
            if len(y) <= len(owner) or np.linalg.matrix_rank(x) < len(owner) or len(np.unique(clusters)) < 2:
                continue
            if np.linalg.lstsq(x, y, rcond=None)[1].sum() < 1e-9:
                continue
            table = np.vstack([[0, 0, *owner], np.column_stack([y, clusters, x])])
            np.savetxt(folder / f"{case:03}.csv", table, delimiter=",", fmt="%.17g")
        head, found = ask_r(folder)
    rows = [summarise(found[case]) if case in found else [NAN] * 9 for case in range(N_CASES)]
    names = ["errors", "dfs", "highs", "last_p", "a_f", "a_df", "a_p", "b_f", "ab_p"]
    digits = [9 if name.endswith("_p") else 11 for name in names]
    rows = [[float(f"{v:.{d}g}") for v, d in zip(row, digits)] for row in rows]
    note = head + "; sums weighted by 1 for the mean, 2, 3, ... over the columns; F with HTZ's df"
    sc.write("cr2", rows, inputs, names, ["numpy"], note)


if __name__ == "__main__":
    main()
