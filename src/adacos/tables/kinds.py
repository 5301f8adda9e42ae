"""The kinds of covariates a table may hold; every room speaks of them by these names."""

NUMERIC, BINARY, CONSTANT, CATEGORICAL = "numeric", "binary", "constant", "categorical"
