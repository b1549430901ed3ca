"""treelens: Weisfeiler-Lehman graph kernels that learn which subtree patterns matter.

The public names are those of the stub beside this file, ``__init__.pyi``: type checkers and editors
read it, and here each name is imported when it is first used, so that ``import treelens`` itself
costs a few milliseconds and compiles nothing.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, _, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
