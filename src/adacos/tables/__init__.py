"""Tables: what a column is, how a table becomes numbers, and how files are read and written.

Column kinds, the encoder from any data frame to arrays, Gaussian imputation, CSV and Parquet, and
files that are whole or absent. Nothing here knows of models, policies or costs.
"""
