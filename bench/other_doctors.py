"""Does another doctor name the faults that ours is measured on? DEFault++ (PyPI: defaultplusplus), on the same runs.

    python bench/other_doctors.py --kinds GPT-2 BERT --seeds 2 --healthy 10 --repaired

The runs are those of `python -m softscope.doctor.faults`: same models, data, faults, seeds and steps. Each one trains
twice: bare, which gives the held-out loss and the time, and watched by DEFault++ as its README says: its
FeatureExtractor sees every step, its RuntimeNormalizer fits the features to its schema, and the classifier that comes
with it answers once, at the end. It needs attention that is computed step by step, where half of ours are fused; where
that makes it another run, within five steps and by more than 0.01 of the loss, the last line says so. Our runs have no
epochs, so the steps are cut into ten, its own schedule, with a validation after each. It is called before gradients are
zeroed; its own example calls it after that, when there are none to see.

As it is, version 0.4.1 stops at the first step of BERT (it subtracts the input of half an FFN from its output) and of
models with grouped queries, and on a CPU it takes every update for 0 (it keeps the weights themselves, not copies).
With --repaired, it leaves out the measurements that stop it, and it gets the copies.

"harmed" is the measure of docs/faults.md. A cause is right if it is one of CAUSES below, which are generous: what comes
close counts. "near" is the right category only. Unit of time: processor time of the watched training in bare ones,
without validation and without the answer at the end.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import statistics
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from softscope.doctor.faults import runs
from softscope.doctor.faults.catalogue import FAULTS
from softscope.doctor.faults.measure import Band, band
from softscope.doctor.faults.models import BATCH, KINDS
from softscope.doctor.faults.runs import STEPS, Case, Result

try:
    from defaultplusplus import FeatureExtractor, __version__
    from defaultplusplus.diagnosis import load_pretrained
    from defaultplusplus.processing import RuntimeNormalizer
except ImportError as error:
    sys.exit(
        f"DEFault++ cannot be imported ({error}); run `pip install --no-deps defaultplusplus cloudpickle joblib "
        "narwhals pandas python-dateutil scikit-learn six threadpoolctl`, which leaves torch as it is."
    )

EPOCHS = 10
SAME, CLOSE = 5, 0.01  # the steps whose losses are compared, bare and watched; later, rounding may have grown
MASKING = "masking decoder_masking"
# What DEFault++ calls our faults: its categories, and its causes. No cause: its catalogue has none for it.
CAUSES = {
    "no causal mask": (MASKING, "break_causal_mask zero_mask"),
    "the next token is visible": (MASKING, "break_causal_mask"),
    "causal mask inverted": (MASKING, "inverted_mask break_causal_mask"),
    "a token does not see itself": (MASKING, ""),
    "everything hidden": (MASKING, "zero_mask"),
    "causal mask in an encoder": (MASKING + " variant", "causal_in_noncausal"),
    "padding visible": (MASKING, "zero_mask pad_masking_error"),
    "padding mask inverted": (MASKING, "inverted_mask pad_masking_error"),
    "padding of another sequence": (MASKING, "wrong_mask_broadcast pad_masking_error"),
    "q zeroed": ("qkv", "zero_query"),
    "k zeroed": ("qkv", "zero_key"),
    "v zeroed": ("qkv", "zero_value"),
    "one head for all": ("qkv variant", "tie_heads wrong_variant"),
    "keys on one line": ("qkv", "wrong_head_dim"),
    "q and k swapped": ("qkv", "swapped_qk"),
    "k and v swapped": ("qkv", ""),
    "q, k, v frozen": ("qkv", "freeze_qkv"),
    "q frozen": ("qkv", "freeze_qkv"),
    "q, k, v in no optimizer": ("qkv", "freeze_qkv"),
    "q detached": ("qkv", "freeze_qkv"),
    "k detached": ("qkv", "freeze_qkv"),
    "v detached": ("qkv", "freeze_qkv"),
    "output detached": ("qkv", "freeze_qkv"),
    "no_grad inside": ("qkv", "freeze_qkv"),
    "output times 0": ("qkv residual", "zero_value residual_drop"),
    "no 1/√d": ("score", "missing_scaling wrong_scaling_factor"),
    "16 times the scale": ("score", "missing_scaling wrong_scaling_factor"),
    "a sixteenth of the scale": ("score", "wrong_scaling_factor"),
    "W_Q and W_K × 8": ("score qkv", "wrong_scaling_factor"),
    "dropout before the softmax": ("score", "misplaced_dropout"),
    "softmax twice": ("score", ""),
    "scores in float16": ("score", "unsafe_type_cast"),
    "no positions": ("positional", "missing_positional"),
    "positions end at 8": ("positional", "truncate_positions"),
    "positions shifted by 3": ("positional", "off_by_one"),
}


@dataclasses.dataclass
class Watched:
    """What DEFault++ said of a run, and what the run was without it."""

    bare: Result
    times: float = math.nan
    alarm: bool = False
    category: str = ""
    cause: str = ""
    sure: float = math.nan
    known: str = ""
    error: str = ""
    apart: float = 0.0

    @property
    def name(self) -> str:
        return self.bare.case.name

    @property
    def right(self) -> bool:
        return self.alarm and self.cause in CAUSES.get(self.name, ("", ""))[1].split()

    @property
    def near(self) -> bool:
        return self.alarm and not self.right and self.category in CAUSES.get(self.name, ("", ""))[0].split()


def watcher(model: torch.nn.Module, repaired: bool) -> Any:
    """Its extractor; repaired, it has no taps where they would stop it."""
    extractor: Any = FeatureExtractor(model)
    if repaired:
        inspector, taps = extractor.inspector, extractor.collector.sublayer_capture
        taps.remove()
        if inspector._ffn_pattern.module_attr == "intermediate":
            inspector._ffn_pattern.module_attr = ""
        config: Any = model.config
        if getattr(config, "num_key_value_heads", config.num_attention_heads) != config.num_attention_heads:
            inspector._attn_pattern.qkv_style = "unknown"
        taps.install()
    return extractor


def keep_copies(extractor: Any) -> None:
    """Let it compare weights with what they were, not with themselves."""
    for module in extractor.collector._modules:
        if hasattr(module, "_previous_params"):
            module._previous_params = {name: x.clone() for name, x in module._previous_params.items()}


def train(case: Case, *, watch: bool, repaired: bool = False) -> tuple[Result, float, dict[str, float]]:
    """The run, its processor time, and the features if it is watched."""
    fault = case.fault
    model = case.kind.model(case.seed, width=case.width, way="eager" if watch or (fault and fault.eager) else None)
    target = runs._target(case, model)
    losses: list[float] = []
    features: dict[str, float] = {}
    found = seconds = math.nan
    with target.undo:
        if fault is not None:
            fault.inject(target)
        trained = [p for p in model.parameters() if p.requires_grad and id(p) not in target.withheld]
        optimizer = torch.optim.Adam(trained, case.rate)
        generator = torch.Generator().manual_seed(case.seed)
        extractor: Any = watcher(model, repaired) if watch else None
        more = {"output_attentions": True, "output_hidden_states": True} if watch else {}
        seconds = 0.0
        for epoch in range(EPOCHS):
            start = time.process_time()
            for _ in range(case.steps // EPOCHS):
                began = time.perf_counter()
                batch = case.kind.batch(BATCH, generator)
                optimizer.zero_grad()
                outputs = model(**batch, **more)
                outputs.loss.backward()
                optimizer.step()
                losses.append(float(outputs.loss.detach()))
                if watch:
                    extractor.step(
                        loss=outputs.loss, outputs=outputs, optimizer=optimizer, step_time=time.perf_counter() - began,
                        **{name: batch[name] for name in ("input_ids", "attention_mask", "labels")},
                    )  # fmt: skip
                if watch and repaired:
                    keep_copies(extractor)
            if watch:
                extractor.epoch_end(epoch)
            seconds += time.process_time() - start
            if watch:
                loss = runs.held_out(model, case.kind)
                extractor.record_validation(epoch, {"loss": loss, "perplexity": math.exp(min(loss, 20.0))})
        start = time.process_time()
        if watch:
            with extractor:
                features = extractor.finalize()
        seconds += time.process_time() - start
        if fault is None or not fault.repaired:
            found = runs.held_out(model, case.kind)
    if fault is not None and fault.repaired:
        found = runs.held_out(model, case.kind)
    return Result(case, tuple(target.touched) if fault else (), tuple(losses), found, ()), seconds, features


def seen(case: Case, repaired: bool) -> Watched:
    """Train twice, and ask."""
    bare, alone, _ = train(case, watch=False)
    of = Watched(bare)
    try:
        result, seconds, features = train(case, watch=True, repaired=repaired)
        arch = "encoder" if case.kind.family == "encoder" else "decoder"
        normalizer, predictor = RuntimeNormalizer.load(arch), load_pretrained(arch)
        said = predictor.predict(normalizer.encode(features, mode="raw"))
        of.times = seconds / alone
        of.alarm, of.category, of.cause = said.is_faulty, said.category or "", said.root_cause or ""
        of.sure = said.detection_prob
        of.known = "{} of {}".format(*normalizer.coverage(features))
    except Exception as error:
        of.error = f"{type(error).__name__}: {error}".split("\n")[0]
    else:
        apart = [abs(a - b) for a, b in zip(bare.losses[:SAME], result.losses[:SAME], strict=True)]
        assert not apart[0] > CLOSE, f"{case}: watched, the run is another one from the start: {apart}"
        of.apart = max(apart)
    return of


def cases(kinds: Sequence[str], first: int, seeds: int, healthy: int) -> Iterator[Case]:
    for kind in (kind for kind in KINDS if kind.name in kinds):
        yield from (Case(kind.name, seed) for seed in range(first, first + healthy))
        for fault in (fault for fault in FAULTS if kind.family in fault.families):
            yield from (Case(kind.name, seed, fault.name) for seed in range(first, first + seeds))


def totals(title: str, some: Sequence[Watched]) -> None:
    asked = [one for one in some if not one.error]
    counts = f"{sum(one.alarm for one in asked)} alarms in {len(asked)} runs"
    if any(one.name for one in asked):
        counts += f", right cause {sum(one.right for one in asked)}, near {sum(one.near for one in asked)}"
    named = Counter(f"{one.category}/{one.cause}" for one in asked if one.alarm)
    often = ", ".join(f"{name} {many}" for name, many in named.most_common(6))
    failed = len(some) - len(asked)
    print(f"- {title}: {counts}{f', {failed} failed' if failed else ''}. Named: {often or 'nothing'}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [kind.name for kind in KINDS]
    parser.add_argument("--kinds", nargs="+", choices=names, default=["GPT-2", "BERT"], help="models (GPT-2 BERT)")
    parser.add_argument("--first", type=int, default=100, help="the first seed (100)")
    parser.add_argument("--seeds", type=int, default=2, help="runs of each fault, in all layers (2)")
    parser.add_argument("--healthy", type=int, default=10, help="healthy runs of each kind, at least 2 (10)")
    parser.add_argument("--repaired", action="store_true", help="mend what stops it or blinds it, see above")
    given = parser.parse_args()
    torch.set_num_threads(1)
    runs.quiet()
    warnings.simplefilter("ignore")
    print(f"DEFault++ {__version__}, {'repaired' if given.repaired else 'as it is'}, {STEPS} steps\n", flush=True)
    print("| model | seed | fault | harmed | alarm | sure | names | right | features known | time |")
    print("|---|---:|---|---|---|---:|---|---|---:|---:|", flush=True)
    every: list[Watched] = []
    bands: dict[str, Band] = {}
    harmed: dict[bool, list[Watched]] = {True: [], False: []}
    for case in cases(given.kinds, given.first, given.seeds, max(2, given.healthy)):
        one = seen(case, given.repaired)
        every.append(one)
        hurt = "healthy"
        if case.name:
            bands.setdefault(case.of, band([x.bare for x in every if x.bare.case.of == case.of and not x.name]))
            is_harmed = bands[case.of].harmed(one.bare)
            harmed[is_harmed].append(one)
            hurt = "harmed" if is_harmed else "unharmed"
        told = one.error or (f"{one.category}/{one.cause}" if one.alarm else "")
        right = "yes" if one.right else "near" if one.near else "no" if case.name else ""
        cells = [case.of, case.seed, case.name or "none", hurt, "yes" if one.alarm else "no", f"{one.sure:.2f}", told,
                 right, one.known, f"{one.times:.2f}"]  # fmt: skip
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)
    print()
    for kind in given.kinds:
        totals(f"{kind}, healthy", [one for one in every if one.bare.case.of == kind and not one.name])
        totals(f"{kind}, with a fault", [one for one in every if one.bare.case.of == kind and one.name])
    totals("all healthy", [one for one in every if not one.name])
    totals("all with a fault that harmed", harmed[True])
    totals("all with a fault that did not harm", harmed[False])
    times = sorted(one.times for one in every if not one.error)
    if times:
        print(f"- time: median {statistics.median(times):.2f} of bare ones, from {times[0]:.2f} to {times[-1]:.2f}")
    others = [f"{one.bare.case.of} {one.bare.case.seed} {one.name}" for one in every if one.apart > CLOSE]
    print(f"- another run when watched: {', '.join(others) or 'none'}")


if __name__ == "__main__":
    main()
