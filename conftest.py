"""Run the Python blocks of the documentation as tests.

Fenced ```python blocks of one page share a namespace and run in order; the cells of notebook pages run in the
Sphinx build instead.
"""

import sys
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

with pytest.MonkeyPatch.context() as patch:  # processes that a test starts have sympy's own cache
    patch.setenv("SYMPY_CACHE_SIZE", "100000")  # as `iomodel` has it; sympy derives parts anew beyond 1000
    import sympy  # noqa: F401 - reads its setting when it is imported

LINUX_ONLY = [] if sys.platform == "linux" else ["docs/triton-count.md", "iomodel/triton/kernel_counter.py"]  # Triton
collect_ignore = ["docs/conf.py", "docs/_ext", *LINUX_ONLY]  # docs/_ext needs Sphinx

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(doctest_optionflags=ELLIPSIS | NORMALIZE_WHITESPACE), SkipParser()],
    patterns=["docs/*.md", "docs/*/*.md", "README.md"],
    excludes=["docs/_build/*", *LINUX_ONLY],
).pytest()
