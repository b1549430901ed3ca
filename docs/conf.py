"""How the documentation is built: ``make docs``; warnings are errors."""

from __future__ import annotations

from importlib import metadata

import treelens

project = "treelens"
author = "the treelens developers"
project_copyright = author
release = version = treelens.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "gallery/*.ipynb", "gallery/*.py", "gallery/*.zip"]
templates_path = ["_templates"]

# The reference: one page for each public name, from its docstring.
autosummary_generate = True
autodoc_typehints = "none"  # numpydoc sections say the types in words
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# The examples are run, and shown with what they print and draw.
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "ignore_pattern": r"(own_|predict_with_|ready_made_)",  # programs, which pages link to
    "gallery_dirs": "gallery",
    "filename_pattern": "plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "min_reported_time": 1e6,
    "write_computation_times": False,
}

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

html_theme = "pydata_sphinx_theme"
html_title = "treelens"
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
_LINKS = dict(x.split(", ") for x in metadata.metadata("treelens").get_all("Project-URL") or ())
if "Repository" in _LINKS:  # set once, in pyproject.toml
    html_theme_options["icon_links"] = [
        {"name": "Code", "url": _LINKS["Repository"], "icon": "fa-solid fa-code-branch"}
    ]
