"""Sphinx builds the site: pages in Markdown, reference from docstrings, gallery from examples/.

Sphinx with numpydoc and sphinx-gallery is what scikit-learn is documented with: its users know the
pages, and docstrings, examples and links between projects follow the same conventions.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import adacos

# Examples fit small models: one BLAS thread is the fastest.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

HERE = Path(__file__).parent


def plain_warning(message: Any, category: type[Warning], *_: Any) -> str:
    """A warning of an example as the gallery prints it, without the path on this machine."""
    return f"{category.__name__}: {message}\n"


warnings.formatwarning = plain_warning

project = "adacos"
author = "The adacos developers"
copyright = "the adacos developers, BSD-3-Clause"
release = version = adacos.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["**/README.md", "gallery/**/*.ipynb", "gallery/**/*.py", "gallery/**/*.json"]
templates_path = ["_templates"]
default_role = "py:obj"
smartquotes = False  # an option such as --known must stay two hyphens
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
# A command line or what a program prints has no language of its own.
highlight_language = "text"

toc_object_entries_show_parents = "hide"
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

html_theme = "pydata_sphinx_theme"
html_title = "adacos"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options: dict[str, Any] = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"index": [], "install": [], "commands": [], "changelog": []}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("adacos",),
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "plot_gallery": "True",
    "min_reported_time": 1,
}


def write_commands(app: Any) -> None:
    """The command reference, as typer itself describes the commands."""
    described = subprocess.run(
        [sys.executable, "-m", "typer", "adacos.cli.app", "utils", "docs", "--name", "adacos"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    text = described.replace("# `adacos`\n", "# Command line\n", 1).replace("```console", "```text")
    (HERE / "generated").mkdir(exist_ok=True)
    (HERE / "generated" / "commands.md").write_text(text, encoding="utf-8")


def skip_inherited(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool:
    """Leave out what every scikit-learn estimator has."""
    common = {"get_params", "set_params", "get_metadata_routing", "set_output"}
    return skip or name in common or (name.startswith("set_") and name.endswith("_request"))


def setup(app: Any) -> None:
    """Connect the two functions above."""
    app.connect("builder-inited", write_commands)
    app.connect("autodoc-skip-member", skip_inherited)
