"""The architecture page and the README say what is true of the source tree."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "adacos"
MODULE_LIMIT, FUNCTION_LIMIT = 400, 60
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# Names that need a comment, and names that functions do not have; words are tools/check_words.py's.
REJECTED = re.compile("Seen|Ground|land")
REJECTED_FUNCTION = re.compile("times|given|settled|inside")


def docstring_lines(tree: ast.Module) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS)) and ast.get_docstring(node):
            first = node.body[0]
            lines |= set(range(first.lineno, first.end_lineno + 1))
    return lines


def too_long(source: str, module: str) -> Iterator[tuple[str, int]]:
    """Modules and functions over the limit, written as in the page, with their lines."""
    tree = ast.parse(source)
    documented = docstring_lines(tree)
    length = len(source.splitlines()) - len(documented)
    if length > MODULE_LIMIT:
        yield f"`{module}`", length
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS):
            lines = set(range(node.lineno, node.end_lineno + 1)) - documented
            if len(lines) > FUNCTION_LIMIT:
                yield f"`{module}` `{node.name}`", len(lines)


def test_the_measure_counts_code_and_not_docstrings() -> None:
    code = "\n".join(["    x = 0"] * 60)
    function = f'def f():\n    """One.\n\n    Two.\n    """\n{code}\n'
    assert dict(too_long(function, "m.py")) == {"`m.py` `f`": 61}
    assert not dict(too_long(function.replace("    x = 0\n", "", 1), "m.py"))


def test_only_the_exceptions_of_the_page_exceed_the_limits() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    stated = re.findall(r"^\| (`[\w/]+\.py`(?: `\w+`)?) \| \w.+ \|$", page, re.MULTILINE)
    measured = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        module = path.relative_to(PACKAGE).as_posix()
        measured |= dict(too_long(path.read_text(encoding="utf-8"), module))
    assert sorted(stated) == sorted(measured), "see docs/architecture.md, How much fits"


def test_every_module_says_what_may_live_there() -> None:
    for path in PACKAGE.rglob("*.py"):
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        assert docstring, f"{path.relative_to(PACKAGE)} opens without a docstring"


@pytest.mark.parametrize("drawing", ["draw_layers.py", "draw_walks.py"])
def test_the_drawings_are_up_to_date(drawing: str) -> None:
    """Layers come from what lint-imports enforces, walks from the calls as they are recorded."""
    if drawing == "draw_walks.py":
        pytest.importorskip("fastapi")
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / drawing, "--check"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_tests_lie_in_the_folders_of_what_they_test() -> None:
    """And share what they need by modules that are no tests."""
    tests = ROOT / "tests"
    folders = {path.parent.relative_to(tests) for path in tests.rglob("test_*.py")}
    own = {"attack", "browser", "golden", "studies"}
    for folder in {path.parts[0] for path in folders if path.parts} - own:
        assert (PACKAGE / folder).is_dir(), f"tests/{folder} mirrors no package"
    for path in tests.rglob("*.py"):
        found = re.search(r"^ *from tests\.([\w.]+\.)?test_\w+ import", path.read_text(), re.M)
        assert not found, f"{path.relative_to(ROOT)}: {found[0]} a test"


def test_nothing_above_the_policies_tests_their_types() -> None:
    """What tells of a policy asks it; only whether a file holds a policy at all is looked at."""
    above = ["card.py", "persistence.py", "cli", "report", "batch", "service", "demo.py"]
    paths = [path for name in above for path in (PACKAGE / name).rglob("*.py") or ()]
    paths += [PACKAGE / name for name in above if name.endswith(".py")]
    found = [
        f"{path.relative_to(PACKAGE)}: {match[0]}"
        for path in paths
        for match in re.finditer(
            r"isinstance\([^)]*(Policy|Classifier)\b|(has|get)attr\((policy|estimator)\b.*",
            path.read_text(encoding="utf-8"),
        )
        if "isinstance(policy, BasePolicy" not in match[0]
    ]
    assert not found


# Where an annotation may say `Any`: the two names for "a decider, whatever its states are", which
# stand for all others, and frames of pandas, which are no types of ours.
ANY_ALLOWED = {
    ("decision.py", "AnyDecider"),
    ("deciders/out_of_fold.py", "AnyFoldedDecider"),
    ("engine.py", "to_frame"),
    ("engine.py", "pandas_module"),
}


def says_any(node: ast.AST | None) -> bool:
    """Whether an annotation says `Any`, other than of the elements of an array."""
    if isinstance(node, ast.Constant):
        return re.search(r"(?<!NDArray\[)\bAny\b", str(node.value)) is not None
    if isinstance(node, ast.Subscript) and getattr(node.value, "id", "") == "NDArray":
        return False
    if isinstance(node, ast.Name) and node.id == "Any":
        return True
    return node is not None and any(says_any(child) for child in ast.iter_child_nodes(node))


def annotations(tree: ast.Module) -> Iterator[tuple[str, str, ast.AST | None]]:
    """Each annotation of a module, and each alias: the function or name, and the parameter."""
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS):
            yield node.name, "", node.returns
            every = node.args
            for arg in (*every.posonlyargs, *every.args, *every.kwonlyargs, every.vararg):
                if arg is not None:
                    yield node.name, arg.arg, arg.annotation
        elif isinstance(node, ast.AnnAssign):
            name = ast.unparse(node.target)
            yield name, name, node.annotation
            if ast.unparse(node.annotation) == "TypeAlias":
                yield name, name, node.value
        elif isinstance(node, ast.ClassDef):
            for base in node.bases:
                yield node.name, "", base


def test_the_measure_of_any_reads_annotations() -> None:
    code = "def f(a: list[Any], b: NDArray[Any]) -> 'dict[str, Any]': ..."
    code += "\nx: Any = 1\nclass A(B[Any]): ..."
    found = [name for name, _, hint in annotations(ast.parse(code)) if says_any(hint)]
    assert sorted(found) == ["A", "f", "f", "x"]


# What has a type wherever it is a parameter.
TYPED = ("state", "decider", "policy", "estimator", "classifier")


def test_deciders_states_policies_and_the_engine_have_types() -> None:
    """And so does whatever holds a decider or a state, wherever it is."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        module = path.relative_to(PACKAGE).as_posix()
        theirs = module in ("engine.py", "decision.py") or module.startswith("deciders/")
        for name, parameter, hint in annotations(ast.parse(path.read_text(encoding="utf-8"))):
            said = ast.unparse(hint or ast.Pass())
            held = "Decider" in said or (parameter in TYPED and said == "Any")
            if says_any(hint) and (theirs or held) and (module, name) not in ANY_ALLOWED:
                found.add(f"{module}: {name}({parameter}: {said})")
    assert not found


def test_kinds_of_states_and_deciders_are_not_asked_for() -> None:
    """What differs between them is a function of theirs."""
    found = [
        f"{path.relative_to(PACKAGE)}: {match[0]}"
        for path in PACKAGE.rglob("*.py")
        for match in re.finditer(
            r"isinstance\([^)]*(\w(State|Decider)\b|\bLookahead|ClassLookahead|\bDecision\b)",
            path.read_text(encoding="utf-8"),
        )
    ]
    assert not found


# What a module computes once for all: constants of a kernel, of which arguments are numbers, and
# what is the same for the whole process.
CACHES = {
    "bench/sources.py: library_digest",
    "kernels/bayes_risk.py: sigmoid_below",
    "kernels/class_risk.py: normal_points",
    "kernels/decisions.py: _pieces",
    "kernels/multinomial.py: contrasts",
    "kernels/namespace.py: _of_torch",
    "kernels/splines.py: wiggly_directions",
    "kernels/threads.py: _controller",
}
# Tables that a module has: those that users add to, and others that nothing changes.
TABLES = {f"registry/tables.py: {name}" for name in ("POLICIES", "METHODS", "DATASETS")}
TABLES |= {"persistence.py: _NOTHING"}
EMPTY = re.compile(r"(dict|list|set|\w+Dict|\w+Dictionary|Recent|Tables)\b.*\(.*\)|\{\}|\[\]")


def test_no_module_remembers_what_it_was_asked() -> None:
    """A cache belongs to an object; only constants are computed once for all."""
    cached, tables = set(), set()
    for path in PACKAGE.rglob("*.py"):
        module = path.relative_to(PACKAGE).as_posix()
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, FUNCTIONS):
                said = " ".join(map(ast.unparse, node.decorator_list))
                cached |= {f"{module}: {node.name}"} if "cache" in said else set()
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                if EMPTY.fullmatch(ast.unparse(node.value)) and ast.unparse(target) != "__all__":
                    tables.add(f"{module}: {ast.unparse(target)}")
    assert cached == CACHES
    assert tables == TABLES


# What may be told apart by the number of classes, and where. Both become fewer, never more.
TWINS = {
    "kernels/class_risk.py",
    "kernels/class_strengths.py",
    "models/class_lookahead.py",
    "models/class_values.py",
}
MOST_SITES = 92
SITE = re.compile(
    r"(n_classes|classes_?\)|matrix\)) *(==|!=|<|>|<=|>=) *[23]\b|\.(many|two)_classes\b(?! import)"
    r"|\b(log_odds|probability|intercepts|coef_|effect|out_of_fold|likely|start)\.ndim\b"
    r"|isinstance\([^)]*ClassLookahead"
)


def test_two_classes_and_more_are_one_mechanism() -> None:
    """No module for three or more classes is added, nor a place that asks how many there are."""
    assert {p.relative_to(PACKAGE).as_posix() for p in PACKAGE.rglob("class_*.py")} <= TWINS
    lines = [line for p in PACKAGE.rglob("*.py") for line in p.read_text("utf-8").splitlines()]
    sites = [line.strip() for line in lines if SITE.search(line)]
    assert len(sites) <= MOST_SITES, "\n".join(sites)


def names(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """What a module names: classes, functions, parameters, and what is assigned to."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, *FUNCTIONS)):
            yield node.name, node
        elif isinstance(node, ast.arg):
            yield node.arg, node
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node


def rejected(tree: ast.Module) -> list[str]:
    """Names of a module that the vocabulary rejects, some of them only as those of functions."""
    return [
        name
        for name, node in names(tree)
        if REJECTED.fullmatch(name)
        or (isinstance(node, FUNCTIONS) and REJECTED_FUNCTION.fullmatch(name))
    ]


def test_rejected_names_are_found() -> None:
    code = "class Ground:\n    def times(self, times): self.land = inside = 1\n"
    assert sorted(rejected(ast.parse(code))) == ["Ground", "land", "times"]


def test_no_name_needs_a_comment_and_no_two_classes_share_one() -> None:
    classes: dict[str, str] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        module, tree = path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text("utf-8"))
        assert not rejected(tree), f"{module}: say it by the vocabulary"
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                assert node.name not in classes, f"{node.name} is in {classes[node.name]}, {module}"
                classes[node.name] = module
