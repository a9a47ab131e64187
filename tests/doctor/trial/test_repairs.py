"""Where a repair can be tried, it is: the right mask, or weights that train again; and the run goes on as it was."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from softscope.doctor.faults import repairs
from softscope.doctor.faults.runs import Case, quiet, watched
from softscope.doctor.treat import remedies
from softscope.doctor.treat.prescriptions import Prescription


def prescribed(kind: str, seed: int, fault: str, steps: int = 40) -> Prescription:
    quiet()
    case = Case(kind, seed, fault, steps=steps)
    with watched(case) as of:
        before = copy.deepcopy(of.model.state_dict()), [p.requires_grad for p in of.model.parameters()]
        state = copy.deepcopy(of.optimizer.state_dict())
        given = of.scope.prescribe(of.batch(case.kind), optimizer=of.optimizer)
        assert all(torch.equal(x, before[0][name]) for name, x in of.model.state_dict().items())
        assert [p.requires_grad for p in of.model.parameters()] == before[1]
        assert str(of.optimizer.state_dict()) == str(state)
    assert given[0].remedy == "repair", "a fault comes first"
    return given[0]


@pytest.mark.parametrize("seed", [0, 1])  # by sdpa, and step by step
def test_a_leak_is_told_by_what_the_loss_is_without_it(seed: int) -> None:
    given = prescribed("GPT-2", seed, "the next token is visible", 60)
    tried = given.tried
    assert tried is not None
    assert tried.feigned is not None
    assert tried.feigned < 0.3, "with the next token in sight the task is easy"
    assert tried.before > 3.0, "as it is used, the model has learned nothing"
    assert tried.helps, tried
    assert tried.treated < tried.untreated - 0.3, tried
    assert given.treatment is not None
    assert given.treatment.code().startswith("remedies.mask(model, {'transformer.h.0.attn': 'past'")
    assert "with the present one the loss seems to be 0." in tried.said.en
    assert "按现在的掩码，损失看上去是 0." in tried.said.zh


def test_an_inverted_mask_is_replaced() -> None:
    given = prescribed("Llama", 0, "padding mask inverted")
    assert given.tried is not None
    assert given.tried.helps, given.tried
    assert given.tried.feigned is None, "what it hides, it hides in use, too"
    assert given.treatment is not None
    assert given.treatment.replace


def test_what_cannot_be_tried_says_why() -> None:
    given = prescribed("GPT-2", 1, "everything hidden", 8)
    assert given.tried is None
    assert given.treatment is None
    assert given.standing is not None
    assert "what its mask hides is lost before the softmax" in given.standing.en
    assert prescribed("GPT-2", 0, "q detached", 8).standing is None, "a detach is not to be undone from outside"


def test_weights_that_are_frozen_or_forgotten_are_tried_in_training() -> None:
    for fault in ("q frozen", "q, k, v in no optimizer"):
        given = prescribed("Llama", 1, fault)
        assert given.tried is not None
        assert given.tried.steps == 20
        assert given.tried.treated != given.tried.untreated, "nothing would be different if they did not train"
        assert given.treatment is not None
        assert given.treatment.remedy == "unfreeze"


def test_what_an_optimizer_lacks_is_known_only_with_that_optimizer() -> None:
    quiet()
    case = Case("Llama", 0, "q, k, v in no optimizer", steps=8)
    with watched(case) as of:
        given = of.scope.prescribe(of.batch(case.kind))[0]
    assert given.tried is None
    assert given.standing is not None
    assert "pass optimizer=" in given.standing.en


# The remedies themselves.


class Own(nn.Module):
    """Attention by hand, with an additive mask of its own."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way, self.maps = way, nn.Linear(8, 24)

    def forward(self, x: Tensor, attention_mask: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        del attention_mask  # forgotten
        q, k, v = (y.unflatten(-1, (2, 4)).transpose(1, 2) for y in self.maps(x).chunk(3, dim=-1))
        if self.way == "sdpa":
            y = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        else:
            logits = q @ k.transpose(-1, -2) / 2.0
            y = torch.softmax(logits if mask is None else logits + mask, dim=-1) @ v
        return y.transpose(1, 2).flatten(-2)


def hidden(n: int, *pairs: tuple[int, int]) -> Tensor:
    mask = torch.zeros(n, n)
    for i, j in pairs:
        mask[i, j] = torch.finfo(torch.float32).min
    return mask


@pytest.mark.parametrize("way", ["sdpa", "by hand"])
def test_the_mask_hides_later_tokens_and_padding_and_keeps_what_was_hidden(way: str) -> None:
    torch.manual_seed(0)
    model, x = Own(way), torch.randn(2, 5, 8)
    real = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    own = hidden(5, (3, 1))
    with torch.no_grad():
        right = torch.ones(5, 5, dtype=torch.bool).tril() & real[:, None, None, :].bool()
        wanted = model(x, mask=own + torch.zeros(2, 1, 5, 5).masked_fill(~right, -torch.inf))
        done = remedies.mask(model, {"Own": "past"})
        found = model(x, attention_mask=real, mask=own)
        done.undo()
        assert torch.allclose(found, wanted, atol=1e-6)
        assert not torch.allclose(model(x, attention_mask=real, mask=own), wanted, atol=1e-3)


def test_a_mask_that_hides_too_much_is_replaced_and_a_bias_stays() -> None:
    torch.manual_seed(0)
    model, x = Own("sdpa"), torch.randn(2, 5, 8)
    bias = torch.randn(1, 2, 5, 5)
    with torch.no_grad():
        wanted = model(x, mask=bias * (hidden(5, (4, 0)) == 0))
        remedies.mask(model, {"Own": "all"}, replace=True)
        assert torch.allclose(model(x, mask=bias + hidden(5, (4, 0))), wanted, atol=1e-6)


def test_a_row_that_would_see_nothing_is_left_alone() -> None:
    torch.manual_seed(0)
    for way in ("sdpa", "by hand"):
        model, x = Own(way), torch.randn(1, 3, 8)
        remedies.mask(model, {"Own": "past"})
        out = model(x, attention_mask=torch.tensor([[0, 1, 1]]), mask=None)
        assert out.isfinite().all()


@pytest.mark.parametrize("training", [True, False])
def test_pytorchs_own_module_takes_the_mask(training: bool) -> None:
    torch.manual_seed(0)
    model = nn.MultiheadAttention(8, 2, batch_first=True).train(training)
    x, padded = torch.randn(2, 5, 8), torch.tensor([[False] * 5, [False, False, False, True, True]])
    later = torch.ones(5, 5, dtype=torch.bool).triu(1)
    with torch.no_grad():
        wanted = model(x, x, x, key_padding_mask=padded, attn_mask=later)[0]
        done = remedies.mask(model, {"MultiheadAttention": "past"})
        assert torch.allclose(model(x, x, x, key_padding_mask=padded)[0], wanted, atol=1e-6)
        done.undo()


def test_a_wrong_word_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match='sites must map to "past" or "all", but got \'causal\' at Own'):
        remedies.mask(Own("sdpa"), {"Own": "causal"})  # type: ignore[dict-item]
    with pytest.raises(remedies.NotSupportedError, match="its weights of q, k and v are not known by name"):
        remedies.unfreeze(Own("sdpa"), ["Own"])


def test_a_copied_model_keeps_its_mask_apart() -> None:
    torch.manual_seed(0)
    model, x = Own("sdpa"), torch.randn(1, 4, 8)
    remedies.mask(model, {"Own": "past"})
    assert torch.equal(copy.deepcopy(model)(x), model(x))


def test_the_table_counts_what_the_trials_showed() -> None:
    wanted = list(repairs.cases(0, 1))
    assert {"no causal mask", "padding visible", "q frozen", "everything hidden"} <= {case.name for case in wanted}
    assert "output detached" not in {case.name for case in wanted}
    results = [repairs.Tried(wanted[0], "lower"), repairs.Tried(wanted[0], "higher"), repairs.Tried(wanted[1], "lower")]
    assert repairs.table(results).splitlines()[2:] == [
        f"| {wanted[0].name} | 2 | 1 | 1 |", f"| {wanted[1].name} | 1 | 1 |  |", "| all | 3 | 2 | 1 |",
    ]  # fmt: skip
    assert "合计" in repairs.table(results, "zh")
