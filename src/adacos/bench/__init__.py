"""The benchmark harness: configuration, methods, run, tables, figures, the paper's experiments.

from adacos.bench import BenchConfig, asymmetric, register_method, run

register_method("mine", lambda costs: MyClassifier(costs))
config = BenchConfig(
    datasets=("pima",), methods=("AdaCOS (group lasso)", "mine"),
    settings=(asymmetric(100),), out="results",
)
result = run(config)
"""

from adacos.bench.configuration import BenchConfig
from adacos.bench.cost_figures import draw_costs
from adacos.bench.run import RunResult, run
from adacos.bench.settings import Setting, asymmetric, recall, symmetric
from adacos.bench.tables import FoldTable
from adacos.registry import register_dataset, register_method

__all__ = [
    "BenchConfig",
    "FoldTable",
    "RunResult",
    "Setting",
    "asymmetric",
    "draw_costs",
    "recall",
    "register_dataset",
    "register_method",
    "run",
    "symmetric",
]
