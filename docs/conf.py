"""Sphinx: MyST pages with furo; notebook pages run at every build, so that no output outlives the code behind it."""

import os
import sys
from pathlib import Path

ROOT = str(Path(__file__).resolve().parent.parent)
sys.path.insert(0, ROOT)  # autodoc
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [ROOT, os.environ.get("PYTHONPATH")]))  # notebook kernels

project = "iomodel"
author = "iomodel contributors"
project_copyright = "iomodel contributors"

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
exclude_patterns = ["_build", "jupyter_execute"]

myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3

nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True
nb_render_markdown_format = "myst"  # tables

autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_param = False
napoleon_use_rtype = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = "iomodel"
