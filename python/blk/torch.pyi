from typing import Any, Callable, Optional

from . import Kernel

def op(
    name: str,
    kernel: Kernel,
    schema: str,
    *,
    outputs: Callable[..., Any],
    arguments: Callable[..., Any],
    backward: Optional[Callable[..., Any]] = None,
    **launch: Any,
) -> Callable[..., Any]: ...
