"""Property tests of the traffic of your own kernel against iomodel's predictions.

:class:`Machine` is a counting memory for kernels written in NumPy; :func:`workloads`, :func:`tiles`, :func:`masks`,
:func:`algorithms`, :func:`hardware` and :func:`kernel_calls` are Hypothesis strategies for test inputs;
:func:`assert_traffic` compares the counts with :func:`iomodel.cost`. Every name is imported on first use: the memory
loads no formula, and only the strategies load Hypothesis.
"""

from typing import Any

import lazy_loader as lazy

_public, __dir__, __all__ = lazy.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _public(name)
