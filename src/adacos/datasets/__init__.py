"""Tables to try the library on, with the costs and the folds of the paper.

Three tables are bundled (`load_pima`, `load_wisconsin`, `load_heart`); the fourth is read from the
user's own copy (`load_physionet2012`). `paper_folds` gives the paper's cross-validation.
`make_discrete_problem`, `make_value_dependent_problem`, `make_continuous_problem` and
`make_cube_problem` draw from a known distribution, `load_network` reads one from a file.
"""

from adacos.datasets._bundled import load_heart, load_pima, load_wisconsin
from adacos.datasets._continuous import ContinuousProblem, make_continuous_problem
from adacos.datasets._cube import CubeProblem, make_cube_problem
from adacos.datasets._dataset import Dataset
from adacos.datasets._discrete import (
    DiscreteProblem,
    make_discrete_problem,
    make_value_dependent_problem,
)
from adacos.datasets._folds import paper_folds
from adacos.datasets._network import load_network
from adacos.datasets._physionet import load_physionet2012

__all__ = [
    "ContinuousProblem",
    "CubeProblem",
    "Dataset",
    "DiscreteProblem",
    "load_heart",
    "load_network",
    "load_physionet2012",
    "load_pima",
    "load_wisconsin",
    "make_continuous_problem",
    "make_cube_problem",
    "make_discrete_problem",
    "make_value_dependent_problem",
    "paper_folds",
]
