"""One encoding in one file of the store: a NumPy ``.npz`` without pickle, whose members have checksums."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gape.atomic import replacing
from gape.encodings import Pairs
from gape.files.damage import DAMAGE
from gape.warning import warn_caller


def _tensors(found: Tensor | Pairs) -> dict[str, Tensor]:
    return {"values": found} if isinstance(found, Tensor) else {"values": found.values, "sizes": found.sizes}


def entry_bytes(found: Tensor | Pairs) -> int:
    """Bytes of the numbers of an encoding."""
    return sum(tensor.numel() * tensor.element_size() for tensor in _tensors(found).values())


def write_entry(path: Path, found: Tensor | Pairs) -> None:
    """Write an encoding whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {name: tensor.detach().cpu().numpy() for name, tensor in _tensors(found).items()}
    with replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **arrays)


def read_entry(path: Path) -> Tensor | Pairs | None:
    """The entry, or ``None`` if there is none or it is damaged: a zip file has a CRC-32 of each of its members."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            tensors = {name: torch.from_numpy(arrays[name]) for name in arrays.files}
        return Pairs(tensors["values"], tensors["sizes"]) if "sizes" in tensors else tensors["values"]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except DAMAGE as error:
        fault = "cannot be read" if isinstance(error, PermissionError) else "is damaged"
        warn_caller(f"computing anew, since {path} {fault}: {error}")
        return None
