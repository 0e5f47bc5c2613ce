"""PyTorch: traffic of the operators of a program, masks of FlexAttention, shapes of models.

PyTorch itself is imported only where a program is recorded or a mask is evaluated; recorded calls are counted without
it.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
