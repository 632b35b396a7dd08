from os import PathLike
from typing import Any, Dict, Iterator, List, Literal, Optional, Protocol, Sequence, Tuple, TypedDict, Union

from . import torch as torch

__version__: str

class _HasStream(Protocol):
    @property
    def cuda_stream(self) -> int: ...

class _CudaStream(Protocol):
    def __cuda_stream__(self) -> Tuple[int, int]: ...

_Define = Union[int, float, bool, str]
_Grid = Union[int, Sequence[int]]
_Stream = Union[int, _HasStream, _CudaStream]

class Error(RuntimeError):
    status: str

class ArgumentError(Error, ValueError): ...
class Note(UserWarning): ...

class strided:
    def __init__(self, tensor: Any) -> None: ...

class Trial(TypedDict):
    configuration: str
    verdict: Literal["unknown", "good", "compile", "resources", "wrong", "failed", "pruned", "suspect", "misfit"]
    ms: float
    reason: str
    chosen: bool
    predicted: float

class Info(TypedDict):
    target: str
    configuration: str
    promises: str
    fallback: str
    signature: str
    num_warps: int
    threads: int
    registers: int
    spill_bytes: int
    shared_bytes: int
    programs_per_sm: int
    num_sms: int
    occupancy: float
    tensor_maps: int
    cluster: int
    from_cache: bool
    ptx: Optional[str]

class Report(str):
    def _repr_html_(self) -> str: ...

class Kernel:
    @property
    def name(self) -> str: ...
    @property
    def __name__(self) -> str: ...  # type: ignore[override]
    @property
    def signature(self) -> str: ...
    @property
    def ptx(self) -> str: ...
    # Tensors have __dlpack__ or a buffer, which no type says for all of Python 3.9 on.
    def __call__(
        self, *args: Any, grid: Optional[_Grid] = None, stream: Optional[_Stream] = None, **keywords: Any
    ) -> None: ...
    def constants(self, *args: Any, grid: Optional[_Grid] = None, **keywords: Any) -> Dict[str, Union[int, bool]]: ...
    def info(self, *args: Any, grid: Optional[_Grid] = None, **keywords: Any) -> Info: ...
    def tune(
        self, *args: Any, again: bool = False, isolated: bool = False, grid: Optional[_Grid] = None, **keywords: Any
    ) -> List[Trial]: ...
    def explain(self, target: Optional[str] = None, **defines: _Define) -> Report: ...

class Module:
    def __getattr__(self, name: str) -> Kernel: ...
    def __getitem__(self, name: str) -> Kernel: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...

def load(path: Union[str, "PathLike[str]"], *, device: Optional[str] = None, **defines: _Define) -> Module: ...
def compile(source: str, *, name: str = "source.blk", device: Optional[str] = None, **defines: _Define) -> Module: ...
