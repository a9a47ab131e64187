"""The package keeps to itself: it leaves the global random state alone, and `import softscope` does not load torch."""

import subprocess
import sys

import torch

from softscope.tasks import AttentionOptions, RecallModel, SmallTransformer, copy_batch, recall_batch, train


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def everything():
    generator = torch.Generator().manual_seed(0)
    copy_batch(2, generator=generator)
    SmallTransformer(17, length=32, d=8, heads=2, layers=1)
    options = AttentionOptions(qk_norm="rms", learn_temperature=True, sink=0.0)
    model = RecallModel(d=8, vocabulary=16, options=options)
    return train(model, lambda g: recall_batch(2, noise=0.5, generator=g), steps=2)


def test_the_global_random_state_is_neither_read_nor_changed():
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = everything()
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert everything() == first


def test_importing_softscope_imports_neither_torch_nor_tasks():
    result = run(
        "import sys, softscope; assert softscope.softmax; "
        "print([m for m in ('torch', 'softscope.tasks') if m in sys.modules])"
    )
    assert result.stdout.strip() == "[]", result.stderr


def test_without_torch_the_room_says_what_to_install():
    result = run("import sys; sys.modules['torch'] = None; import softscope.tasks")
    assert result.returncode == 1
    wanted = "ImportError: softscope.tasks needs PyTorch: pip install 'softscope[torch]'"
    assert result.stderr.strip().splitlines()[-1] == wanted
