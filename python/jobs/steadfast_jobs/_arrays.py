"""Arrays by NumPy if it is there, and else by the standard library. Both say forms in the same way:
element type and shape as in the head of NumPy's files, "<f8 (1000, 1000)".
"""

try:
    from . import _numpy as arrays
except ModuleNotFoundError as error:
    if error.name != "numpy":
        raise
    from . import _plain as arrays  # type: ignore[no-redef]

__all__ = ["arrays"]
