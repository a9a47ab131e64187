"""A model in a folder becomes a subject: tokens, masks, halves of sentences, and layers of their own."""

from __future__ import annotations

import pathlib
from typing import Any

import pytest
import torch

from softscope.doctor.evaluation import packages
from softscope.doctor.evaluation.projections import heads
from softscope.tasks import IGNORED

transformers: Any = pytest.importorskip("transformers", reason="pip install transformers")
WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "A", "B", "AB", "C")
SIZES = {
    "vocab_size": len(WORDS), "hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2,
    "max_position_embeddings": 16,
}  # fmt: skip
LINES = ("AABCA", "CABBA", "BBCAB", "CCAAB", "ABCAB", "BACCA", "CBABA", "AACCB")


@pytest.fixture
def text(tmp_path: pathlib.Path) -> pathlib.Path:
    file = tmp_path / "text.txt"
    file.write_text("\n".join(LINES) + "\n")
    return file


def saved(model: Any, folder: pathlib.Path) -> pathlib.Path:
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    return folder


def test_the_longest_word_that_fits(tmp_path: pathlib.Path) -> None:
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS))
    tokenize, special = packages._tokenizer(tmp_path)
    assert [WORDS[i] for i in tokenize("AABCx")] == ["[CLS]", "A", "AB", "C", "[UNK]", "[SEP]"]
    assert special == {"[PAD]": 0, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}


def test_masked_tokens_of_other_lines_for_the_truth(tmp_path: pathlib.Path, text: pathlib.Path) -> None:
    config = transformers.BertConfig(num_hidden_layers=1, **SIZES)
    subject = packages.subject(saved(transformers.BertForMaskedLM(config), tmp_path / "bert"), text)
    assert subject.name == "bert"
    made = {part: subject.batch(8, torch.Generator().manual_seed(0), part) for part in ("trial", "held out")}
    for batch in made.values():
        asked = batch["target"] != IGNORED
        assert asked.any(dim=1).all()
        assert (batch["input_ids"][asked] == WORDS.index("[MASK]")).all()
        assert (batch["attention_mask"][asked] == 1).all()
        assert (batch["target"][asked] > WORDS.index("[MASK]")).all()
    whole = [
        {tuple(x) for x in torch.where(b["target"] != IGNORED, b["target"], b["input_ids"]).tolist()}
        for b in made.values()
    ]
    assert not whole[0] & whole[1]
    assert all(len(lines) == len(LINES) / 2 for lines in whole)
    assert subject.model(0)(**made["trial"]).loss.isfinite()


def test_a_sentence_model_chooses_among_halves(tmp_path: pathlib.Path, text: pathlib.Path) -> None:
    lines = [f"{'A ' * i}B C" for i in range(1, 25)]
    text.write_text("\n".join(lines))
    config = transformers.BertConfig(num_hidden_layers=1, **(SIZES | {"max_position_embeddings": 32}))
    subject = packages.subject(saved(transformers.BertModel(config), tmp_path / "model"), text)
    assert subject.name == tmp_path.name
    batch = subject.batch(3, torch.Generator().manual_seed(0), "trial")
    assert batch["input_ids"].shape[:2] == (3, 1 + packages.CANDIDATES)
    assert subject.model(0)(**batch).logits.shape == (3, packages.CANDIDATES)


def test_layers_that_share_weights_get_their_own(tmp_path: pathlib.Path, text: pathlib.Path) -> None:
    config = transformers.AlbertConfig(embedding_size=8, num_hidden_layers=3, num_hidden_groups=1, **SIZES)
    shared = transformers.AlbertForMaskedLM(config).eval()
    apart = packages.subject(saved(shared, tmp_path / "albert"), text).model(0)
    assert len(heads(apart)) == 3 * 2
    tokens = torch.tensor([[2, 5, 6, 7, 3]])
    with torch.no_grad():
        assert torch.equal(apart.model(input_ids=tokens).logits, shared(input_ids=tokens).logits)


def test_single_heads_are_spoiled_one_at_a_time(
    tmp_path: pathlib.Path, text: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages, "SPOILED", 2)
    config = transformers.BertConfig(num_hidden_layers=2, **SIZES)
    folder = saved(transformers.BertForMaskedLM(config), tmp_path / "bert")
    healthy, *spoiled = packages.packages(folder, text, lambda _: None)
    assert (healthy.case.way, healthy.touched, len(healthy.worth)) == ("healthy", frozenset(), 4)
    assert [patient.touched for patient in spoiled] == [
        {("model.bert.encoder.layer.0.attention.self", 0)}, {("model.bert.encoder.layer.1.attention.self", 0)}
    ]  # fmt: skip
    assert all(patient.worth.keys() >= patient.touched for patient in spoiled)
    assert not healthy.learned
