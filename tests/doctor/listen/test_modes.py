"""Dispatch modes and tensor subclasses see PyTorch's own operators while the probe listens, and after it."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import torch
from torch import nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
import softscope as ss

class Layer(nn.Module):
    def forward(self, x):
        return functional.scaled_dot_product_attention(x, x, x, is_causal=True)

class Names(TorchDispatchMode):
    found = []
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.found.append((type(func).__name__, str(func)))
        return func(*args, **(kwargs or {}))

model, x = Layer(), torch.randn(1, 2, 5, 4)
with ss.probe(model) as scope, Names():
    model(x)
with Names():
    model(x)
attention = [name for name in Names.found if "scaled_dot" in name[1]]
print(len(attention), {kind for kind, _ in attention}, len(scope.history().snapshots))
"""


def test_a_mode_gets_the_operators_themselves() -> None:
    # In a process of its own: PyTorch looks an operator up once and keeps what it finds.
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split(" ", 1)[1].strip() == "{'OpOverload'} 1"
