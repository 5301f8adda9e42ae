"""`adacos bench paper`: every experiment of the paper, from the data to the report."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from adacos.bench.claims import Claim, check_claims
from adacos.bench.comparisons import (
    CellComparison,
    OutcomeIndex,
    OverallComparison,
    compare_cells,
    compare_overall,
    comparison_records,
    overall_records,
)
from adacos.bench.configuration import BenchConfig, available_methods
from adacos.bench.methods import supports
from adacos.bench.names import ADACOS, ADACOS_FORWARD, OWN_METHODS
from adacos.bench.reference import (
    Reference,
    check_reference,
    paper_table_1,
    read_authors_code,
)
from adacos.bench.report import Findings, report_blocks, table_1_records
from adacos.bench.run import RunResult, run
from adacos.bench.same_recall import at_same_recall
from adacos.bench.settings import (
    PAPER_FALSE_POSITIVE,
    PAPER_RECALL,
    PAPER_SYMMETRIC,
    Setting,
    asymmetric,
    recall,
    symmetric,
)
from adacos.bench.tables import (
    FoldTable,
    setting_records,
    summary_records,
    timing_records,
    write_csv,
    write_rows,
)
from adacos.bench.tasks import Failure
from adacos.document.blocks import to_html, to_markdown
from adacos.document.style import check_matplotlib
from adacos.exceptions import MissingExtraError
from adacos.registry import DATASETS, METHODS
from adacos.tables.writing import write_whole

TITLE = "AdaCOS: the paper's experiments reproduced"
BUNDLED = tuple(name for name, source in DATASETS.items() if source.bundled)
_QUICK_FOLDS = (0, 1)


@dataclass(frozen=True)
class PaperOptions:
    """What of the paper is run.

    Parameters
    ----------
    methods : names; None for this library's, ("all",) for every registered method that can be run
        here.
    datasets : names; None for the bundled ones, and PhysioNet if `data` has its path.
    data : path of each data set that the user must bring.
    splits, seed : number of random five-fold splits in addition to the paper's, and their seed.
    jobs : number of processes.
    out : folder of the report.
    quick : two of the five folds only.
    reference : the authors' code's numbers, see `read_authors_code`.
    """

    methods: Sequence[str] | None = None
    datasets: Sequence[str] | None = None
    data: Mapping[str, Path] = field(default_factory=dict)
    splits: int = 0
    seed: int = 0
    jobs: int = 1
    out: Path = Path("report")
    quick: bool = False
    reference: Path | None = None


@dataclass(frozen=True)
class PaperReport:
    """Where the report is, and what it found."""

    index: Path
    claims: tuple[Claim, ...]
    overall: tuple[OverallComparison, ...]
    failures: tuple[Failure, ...]
    seconds: float


def paper_settings() -> tuple[Setting, ...]:
    """All settings of the paper."""
    return (
        *(asymmetric(cost) for cost in PAPER_FALSE_POSITIVE),
        *(symmetric(error) for error in PAPER_SYMMETRIC),
        *(recall(target, cost) for target in PAPER_RECALL for cost in PAPER_FALSE_POSITIVE),
    )


def run_paper(options: PaperOptions, *, progress: bool | None = None) -> PaperReport:
    """Run the paper's experiments, or what of them is not finished, and write the report."""
    config, not_run = configure(options)
    authors: Reference = {}
    if options.reference is not None:
        authors = read_authors_code(options.reference)
    figures: Path | None = config.out / "figures"
    no_figures = ""
    try:
        check_matplotlib()
    except MissingExtraError as error:
        figures, no_figures = None, str(error)
    start = time.perf_counter()
    result = run(config, progress=progress)
    rivals = [o for o in result.outcomes if METHODS[o.method].rival or o.method == ADACOS]
    matched = at_same_recall(rivals, config.settings)
    result = replace(result, outcomes=(*result.outcomes, *matched))
    folds = FoldTable(result.outcomes)
    index = OutcomeIndex(result.outcomes)
    comparisons, overall = _compare(config, index)
    findings = Findings(
        config,
        result,
        folds,
        authors,
        _claims(result),
        comparisons,
        overall,
        time.perf_counter() - start,
        options.quick,
        not_run,
        figures,
        no_figures,
    )
    _write(findings)
    return PaperReport(
        config.out / "index.html",
        tuple(findings.claims),
        tuple(overall),
        result.failures,
        time.perf_counter() - start,
    )


def _claims(result: RunResult) -> list[Claim]:
    """The paper's claims, on its own data sets; none where none of them was run."""
    own = [o for o in result.outcomes if DATASETS[o.dataset].paper is not None]
    return check_claims(FoldTable(own), OutcomeIndex(own)) if own else []


def configure(options: PaperOptions) -> tuple[BenchConfig, tuple[str, ...]]:
    """The checked configuration, and which of the paper's experiments are omitted, and why."""
    not_run: list[str] = []
    check_reference(options.reference)
    methods: Sequence[str] = OWN_METHODS if options.methods is None else options.methods
    if list(methods) == ["all"]:
        methods, absent = available_methods(METHODS)
        not_run += [f"{name}: {why}" for name, why in absent.items()]
    datasets = options.datasets
    if datasets is None:
        datasets = (*BUNDLED, *(name for name in options.data if name not in BUNDLED))
    not_run += [
        f"{source.title}, which cannot be bundled. {source.obtain}"
        for name, source in DATASETS.items()
        if source.obtain is not None and name not in datasets
    ]
    if options.reference is None:
        not_run.append(
            "The authors' code's numbers: pass their table with `--reference PATH` to see them "
            "next to ours."
        )
    config = BenchConfig(
        tuple(datasets),
        tuple(methods),
        paper_settings(),
        Path(options.out),
        options.data,
        folds=_QUICK_FOLDS if options.quick else tuple(range(5)),
        splits=options.splits,
        seed=options.seed,
        jobs=options.jobs,
    )
    for method in config.chosen_methods:
        native = all(supports(method, setting) for setting in config.settings)
        if not native and not method.rival:
            not_run.append(
                f"{method.name} at a target recall: forward selection needs the cost of a false "
                "negative."
                if method.name in OWN_METHODS
                else f"{method.name} at a target recall: it has no such option."
            )
    return config, tuple(not_run)


def _compare(
    config: BenchConfig, index: OutcomeIndex
) -> tuple[list[CellComparison], list[OverallComparison]]:
    """AdaCOS, else the first method, against every other, and its two sequences."""
    lead = ADACOS if ADACOS in config.methods else config.methods[0]
    others = [m for m in config.methods if m != lead]
    cells = [c for other in others for c in compare_cells(index, lead, other)]
    overall = []
    for setting in dict.fromkeys(s.name for s in config.settings if s.name != "symmetric"):
        for other in others:
            turned = (lead, other) == (ADACOS, ADACOS_FORWARD)
            first, second = (other, lead) if turned else (lead, other)
            overall += compare_overall(index, first, second, setting)
    return cells, overall


def _write(findings: Findings) -> None:
    out = findings.config.out
    tables = out / "tables"
    for folder in (tables, findings.figures):
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
    folds, result = findings.folds, findings.result
    references = {"paper": paper_table_1(), "authors_code": findings.authors}
    write_csv(tables / "folds.csv", list(folds.records()))
    write_csv(tables / "summary.csv", summary_records(folds, references))
    write_csv(tables / "table_1.csv", table_1_records(folds, findings.authors))
    write_csv(tables / "comparisons.csv", comparison_records(findings.comparisons))
    write_csv(tables / "overall.csv", overall_records(findings.overall))
    write_csv(
        tables / "claims.csv",
        [{"claim": c.text, "verdict": c.verdict, "numbers": c.numbers} for c in findings.claims],
    )
    write_csv(tables / "timings.csv", timing_records(result))
    write_csv(tables / "settings.csv", setting_records(findings.config.chosen_methods))
    write_rows(tables, result.outcomes)
    blocks = report_blocks(findings)
    write_whole(out / "summary.md", to_markdown(TITLE, blocks).encode())
    write_whole(out / "index.html", to_html(TITLE, blocks).encode())
