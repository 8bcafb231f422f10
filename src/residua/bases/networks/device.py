"""Where networks are trained: on the CPU, or on another device that torch finds. They rest on the CPU.

Only outputs and the gradients of the loss at them, one number a node and network, move between a device and the CPU,
where the sparse solvers live.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

CPU = torch.device("cpu")


def find_device(name: Any) -> torch.device:
    """Return a device that is there: of this name or, for "auto", a GPU (CUDA, then MPS) and else the CPU."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).cpu()  # a name that torch knows need not be there, nor hold numbers
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        said = str(error).splitlines()[0][:100] if str(error) else type(error).__name__
        raise ValueError(
            f'device={str(name)!r} cannot be used ({said}); torch {torch.__version__} is installed: use "auto" or '
            '"cpu", or install a build of torch for it.'
        ) from None
    return device


def device_or_cpu(name: Any) -> torch.device:
    """Return the same, and the CPU where the device is not there: a network trained elsewhere predicts anywhere."""
    try:
        return find_device(name)
    except ValueError:
        return CPU


def precision_on(device: torch.device, dtype: torch.dtype) -> torch.dtype:
    """Return a floating-point type, or single precision where the device does not know it."""
    try:
        torch.zeros(1, dtype=dtype, device=device)
    except (TypeError, RuntimeError):
        return torch.float32
    return dtype


@contextmanager
def on_device(net: nn.Module, device: torch.device, dtype: torch.dtype) -> Iterator[nn.Module]:
    """Lend a network to a device, in this precision; it comes back to the CPU."""
    if device != CPU:
        if any(p.dtype == torch.float64 for p in net.parameters()):
            net.to(dtype=dtype)
        net.to(device)
    try:
        yield net
    finally:
        if device != CPU:
            net.to(CPU)


def seed_dropout(device: torch.device, seed: int) -> None:
    """Seed the generators that a network on this device draws from."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        at = torch.cuda.current_device() if device.index is None else device.index
        torch.cuda.default_generators[at].manual_seed(seed)
    elif device != CPU:
        getattr(torch, device.type).manual_seed(seed)


@contextmanager
def own_generators(device: torch.device) -> Iterator[None]:
    """Give the global generators back as they were."""
    module = None if device == CPU else getattr(torch, device.type)
    which = (device,) if device.type == "cuda" else ()  # others have one generator
    before = None if module is None else module.get_rng_state(*which)
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        if module is not None:
            module.set_rng_state(before, *which)
