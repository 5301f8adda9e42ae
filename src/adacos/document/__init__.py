"""Documents: a report as a list of blocks, and one look for every figure.

Shared by the report on one policy and by the reports of the benchmark; neither is known here.
"""
