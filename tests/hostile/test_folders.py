"""A stranger's folder: no code of it runs, nobody is asked, nothing is fetched, and it takes no more than it may."""

import copy
import json
import os
import pickle
import re
import shutil
import zipfile

import pytest

from cli import models
from cli.commands import Runner
from hostile.budget import attempts
from softscope._text import LANGS
from softscope.cli.checkup import apart

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers", reason="pip install transformers to test folders")

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")
CHINESE = re.compile(r"[\u3400-\u9fff]")
CONSENT = "y\n" * 20


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A good folder, not to be changed."""
    return models.save(tmp_path_factory.mktemp("model"), "llama")


@pytest.fixture
def folder(model, tmp_path):
    """A copy of it to spoil."""
    return shutil.copytree(model, tmp_path / "folder")


@pytest.fixture
def run(capsys, monkeypatch):
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setattr(apart, "SECONDS", 8)
    monkeypatch.setattr(apart, "MEMORY", 2**29)
    return Runner(capsys, monkeypatch)


@pytest.fixture
def trap(folder):
    """Python in the folder that would leave a trace."""
    trace = folder / "ran"
    code = f"import os, pathlib\npathlib.Path({str(trace)!r}).touch()\nclass Own: pass\ngenerate = Own\n"
    (folder / "own.py").write_text(code)
    (folder / "custom_generate").mkdir()
    (folder / "custom_generate" / "generate.py").write_text(code)
    return trace


def change(folder, name="config.json", **changes):
    path = folder / name
    found = json.loads(path.read_text("utf-8")) if path.exists() else {}
    path.write_text(json.dumps(found | changes), "utf-8")


def refused(answer, told=None):
    code, out, err = answer
    assert (code, out) == (2, ""), err
    assert err.count("\n") == 1, err
    assert err.startswith("softscope: ")
    assert "Traceback" not in err
    if told is not None:
        assert told in err
    return err


def in_both(run, *words, told, stdin=""):
    """One sentence, in each language."""
    for lang in LANGS:
        err = refused(run("checkup", *words, "--lang", lang, stdin=stdin), told if lang == "en" else None)
        assert bool(CHINESE.search(err)) == (lang == "zh"), err


NO_MODELS = [
    "AutoModelForAudioClassification", "AutoModel", "AutoModelForCausalLM", "AutoBackbone", "pipeline", "Pipeline",
    "Trainer", "os", "sys", "__init__", "__class__", "__dict__", "_LazyModule", "dynamic_module_utils", "set_seed",
    "PreTrainedModel", "LlamaPreTrainedModel", "LlamaConfig", "LlamaTokenizer", "BertModel", "Own",
    "models.llama.LlamaForCausalLM", "", " ", 7, None, ["LlamaForCausalLM"], {"a": 1},
]  # fmt: skip


@pytest.mark.parametrize("name", NO_MODELS[:4])
def test_a_prompt_that_is_answered_with_yes_runs_nothing(run, folder, trap, name):
    """transformers asks whether to run the folder's Python; the answer used to be read from standard input."""
    kinds = [kind for kind in dir(transformers) if kind.startswith("Auto")]
    change(folder, architectures=[name], auto_map=dict.fromkeys(kinds, "own.Own"))
    in_both(run, folder, told=f"names the class {name}", stdin=CONSENT)
    assert not trap.exists()


@pytest.mark.parametrize("name", NO_MODELS[4:], ids=repr)
def test_only_a_model_of_just_this_kind_is_made(run, folder, trap, name):
    change(folder, architectures=[name], auto_map={"AutoConfig": "own.Own", "AutoModel": "own.Own"})
    refused(run("checkup", folder, stdin=CONSENT))
    assert not trap.exists()


def test_code_named_anywhere_in_a_good_folder_is_passed_over(run, folder, trap):
    kinds = [kind for kind in dir(transformers) if kind.startswith("Auto")]
    change(folder, auto_map=dict.fromkeys(kinds, "own.Own"), custom_pipelines={"text": {"impl": "own.Own"}})
    change(folder, "tokenizer_config.json", auto_map={"AutoTokenizer": ["own.Own", "own.Own"]})
    change(folder, "generation_config.json", custom_generate="own", auto_map={"AutoModel": "own.Own"})
    change(folder, "processor_config.json", auto_map={"AutoProcessor": "own.Own"}, processor_class="Own")
    assert run("checkup", folder, stdin=CONSENT)[0] == 0
    assert not trap.exists()


def test_code_named_in_a_part_of_the_configuration(run, folder, trap):
    """A model of two parts makes each by an Auto class, which would ask as well."""
    part = {"model_type": "clip_text_model", "auto_map": {"AutoModel": "own.Own", "AutoModelForCausalLM": "own.Own"}}
    change(folder, model_type="llava", architectures=["LlavaForConditionalGeneration"], text_config=part)
    refused(run("checkup", folder, stdin=CONSENT))
    assert not trap.exists()


@pytest.mark.parametrize(
    "name", ["Own", "AutoModelForAudioClassification", "pipeline", "Trainer", "LlamaForCausalLM", 7, None]
)
def test_tokenizers_of_no_known_class(run, folder, trap, name):
    change(folder, "config.json", auto_map={"AutoModelForAudioClassification": "own.Own"}, tokenizer_class=name)
    change(folder, "tokenizer_config.json", tokenizer_class=name, auto_map={"AutoTokenizer": ["own.Own", None]})
    code, out, err = run("checkup", folder, stdin=CONSENT)
    assert (code, err) == (0, "") if code == 0 else (code, out, err.count("\n")) == (2, "", 1), err
    assert not trap.exists()


def test_kernels_adapters_and_other_places_are_not_followed(run, folder, monkeypatch):
    import huggingface_hub.constants

    asked = folder / "asked"  # a file, because another process may ask
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: asked.touch() or [])
    change(folder, _attn_implementation="kernels-community/flash-attn", attn_implementation="own/kernel",
           _experts_implementation="own/kernel", experts_implementation="own/kernel", _name_or_path="own/other",
           name_or_path="own/other", transformers_weights="../other.safetensors")  # fmt: skip
    assert run("checkup", folder)[0] == 0
    change(folder, "adapter_config.json", base_model_name_or_path="own/other", peft_type="LORA", auto_mapping="own.Own")
    monkeypatch.setattr("transformers.integrations.peft.is_peft_available", lambda: True)
    monkeypatch.setattr("transformers.models.auto.auto_factory.is_peft_available", lambda: True)
    in_both(run, folder, told="has an adapter")
    assert not asked.exists()
    assert not huggingface_hub.constants.HF_HUB_OFFLINE, "as it was"


def test_a_quantized_model_is_left_to_the_users_code(run, folder):
    change(folder, quantization_config={"quant_method": "mxfp4"})
    in_both(run, folder, told="is quantized")


SIZES = {
    "n_layer": {"num_hidden_layers": 10**9},
    "hidden": {"hidden_size": 10**9},
    "hidden that torch takes": {"hidden_size": 2**20, "head_dim": 8},
    "vocabulary": {"vocab_size": 10**12},
    "vocabulary that torch takes": {"vocab_size": 2**24},
    "labels": {"num_labels": 10**9},
    "digits": {"vocab_size": 10**4000},
    "negative": {"vocab_size": -(10**12)},
    "positions": {"max_position_embeddings": 10**12},
    "inside": {"text_config": {"num_hidden_layers": 10**9}},
    "heads": {"num_attention_heads": 10**6, "num_key_value_heads": 10**6},
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_checked_before_anything_is_allocated(run, folder, name):
    change(folder, **SIZES[name])
    for lang in LANGS:
        refused(run("checkup", folder, "--lang", lang))


def test_a_model_of_many_layers_that_share_weights(run, folder):
    change(folder, model_type="albert", architectures=["AlbertModel"], num_hidden_layers=10**9)
    refused(run("checkup", folder), "num_hidden_layers")


def test_a_gpt2_with_a_mask_as_large_as_a_disk(run, folder):
    change(folder, model_type="gpt2", architectures=["GPT2LMHeadModel"], n_positions=10**7, n_layer=4000, n_head=4)
    refused(run("checkup", folder))


def test_lists_that_a_configuration_makes(run, folder):
    for kind, size in {
        "swin": {"depths": [10**9]},
        "qwen2": {"num_hidden_layers": 10**9},
        "bert": {"num_labels": 10**9},
    }.items():
        change(folder, model_type=kind, architectures=[], **size)
        refused(run("checkup", folder))


NO_CONFIGURATIONS = [
    "[" * 10**5, '{"a":' * 10**5, "[]", "7", "", "{", '{"model_type": ' + "9" * 10**4 + "}", "\udcff", "{}",
    '{"model_type": NaN}', '{"model_type": []}', '{"architectures": {"0": 1}}',
]  # fmt: skip


@pytest.mark.parametrize("text", NO_CONFIGURATIONS, ids=range(len(NO_CONFIGURATIONS)))
def test_configurations_that_are_none(run, folder, text):
    (folder / "config.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    refused(run("checkup", folder))


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"])
@pytest.mark.parametrize("kind", ["/dev/zero", "pipe", "folder", "nowhere", "itself"])
def test_devices_pipes_and_links(run, folder, name, kind):
    path = folder / name
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to({"nowhere": "nothing-there", "itself": name}.get(kind, kind))
    refused(run("checkup", folder))


def test_a_cache_of_links_is_read(run, model, tmp_path):
    """The hub's cache holds links to files elsewhere: these are followed."""
    (tmp_path / "links").mkdir()
    for path in model.iterdir():
        (tmp_path / "links" / path.name).symlink_to(path)
    assert run("checkup", tmp_path / "links")[0] == 0


def test_weights_that_promise_more_than_they_hold(run, folder):
    weights = (folder / "model.safetensors").read_bytes()
    header = json.loads(weights[8 : 8 + int.from_bytes(weights[:8], "little")])
    for spoilt in (
        (2**63 - 1).to_bytes(8, "little") + weights[8:],
        (2**26).to_bytes(8, "little") + weights[8:],
        _header(header | {"model.norm.weight": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}),
        _header(header | {"model.norm.weight": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}),
        b"",
    ):
        (folder / "model.safetensors").write_bytes(spoilt)
        refused(run("checkup", folder), "does not load")
    (folder / "model.safetensors").unlink()
    good = torch.load(_bin(folder, weights), weights_only=True)
    for spoilt in (
        {name: x.new_zeros(1).expand(2**15, *x.shape) for name, x in good.items()},
        good | {"model.norm.weight": torch.zeros(1).expand(2**40)},
        list(good.values()),
        good | {"model.norm.weight": "text"},
        good | {"model.norm.weight": torch.zeros(32).to_sparse()},
    ):
        torch.save(spoilt, folder / "pytorch_model.bin")
        refused(run("checkup", folder))


def _header(header):
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text


def _bin(folder, weights):
    from safetensors.torch import load

    torch.save(load(weights), folder / "pytorch_model.bin")
    return folder / "pytorch_model.bin"


@pytest.mark.parametrize(
    "part", ["../outside.safetensors", "/etc/passwd", "own.py", "", ".", "a/b.safetensors", 7, None]
)
def test_an_index_that_leads_out_of_the_folder(run, folder, part):
    os.rename(folder / "model.safetensors", folder.parent / "outside.safetensors")
    change(folder, "model.safetensors.index.json", metadata={}, weight_map={"model.norm.weight": part})
    refused(run("checkup", folder))


def test_an_index_of_two_files_is_read(run, folder):
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "model.safetensors")
    names = sorted(weights)
    parts = {f"model-0000{i + 1}-of-00002.safetensors": names[i::2] for i in range(2)}
    for part, own in parts.items():
        save_file({name: weights[name] for name in own}, folder / part, metadata={"format": "pt"})
    (folder / "model.safetensors").unlink()
    where = {name: part for part, own in parts.items() for name in own}
    change(folder, "model.safetensors.index.json", metadata={"total_size": 1}, weight_map=where)
    assert run("checkup", folder)[0] == 0


def test_a_pickle_in_disguise_runs_nothing(run, folder):
    class Malicious:
        def __reduce__(self):
            return (os.mkdir, (str(folder / "ran"),))

    for name in ("model.safetensors", "vocab.json", "tokenizer.json", "spiece.model", "pytorch_model.bin", ".metadata",
                 "shard-00000-model-00001-of-00001.safetensors"):  # fmt: skip
        (folder / name).write_bytes(pickle.dumps(Malicious()))
        refused(run("checkup", folder))
        assert not (folder / "ran").exists(), name
        shutil.copy(folder / name, folder / "training_args.bin")


def test_a_tokenizer_that_unfolds(run, folder):
    """Ten replacements of one letter by ten: the library in Rust would end this process when memory runs out."""
    found = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    step = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 10}
    found["normalizer"] = {"type": "Sequence", "normalizers": [step] * 12}
    (folder / "tokenizer.json").write_text(json.dumps(found), "utf-8")
    in_both(run, folder, told="was stopped")


def test_a_tokenizer_that_reads_elsewhere(run, folder):
    change(folder, "tokenizer_config.json", tokenizer_file="/dev/zero", vocab_file="/dev/zero", merges_file="/dev/zero")
    assert run("checkup", folder)[0] == 0


def test_the_text_file(run, folder, tmp_path):
    in_both(run, folder, "--text-file", "/dev/zero", told="is larger than 16 MiB")
    with open(tmp_path / "hole.txt", "wb") as file:
        file.truncate(2**40)
    in_both(run, folder, "--text-file", tmp_path / "hole.txt", told="is larger than 16 MiB")


def packed(path):
    with zipfile.ZipFile(path) as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in members.items():
            archive.writestr(member, data)


BATCHES = {
    "sparse": (lambda: torch.eye(48, dtype=torch.long).to_sparse(), "input_ids is sparse"),
    "sparse and large": (lambda: torch.sparse_coo_tensor(size=(10**6, 10**6)), "input_ids is sparse"),
    "compressed": (lambda: torch.eye(8).to_sparse_csr(), "input_ids is sparse"),
    "expanded": (lambda: torch.zeros(1, 1, dtype=torch.long).expand(10**7, 10**7), "is too large"),
    "meta": (lambda: torch.zeros(10**6, 10**6, device="meta"), "input_ids is meta"),
    "keys": (lambda: {1: torch.zeros(3, 8)}, "a dictionary of tensors"),
    "empty": (dict, "a dictionary of tensors"),
    "no rows": (lambda: torch.zeros(0, 8, dtype=torch.long), None),
    "no numbers": (lambda: torch.tensor(7), None),
    "floats": (lambda: torch.full((6, 8), float("nan")), None),
    "deep": (lambda: torch.zeros([1] * 60, dtype=torch.long), None),
}  # fmt: skip


@pytest.mark.parametrize("name", BATCHES)
def test_batches(run, folder, tmp_path, name):
    batch, told = BATCHES[name]
    torch.save(batch(), tmp_path / "b.pt")
    if told is None:
        refused(run("checkup", folder, "--batch", tmp_path / "b.pt"))
    else:
        in_both(run, folder, "--batch", tmp_path / "b.pt", told=told)


def test_files_of_batches(run, folder, tmp_path):
    path = tmp_path / "b.pt"
    torch.save(torch.zeros(2**10, 2**10), path)
    packed(path)
    in_both(run, folder, "--batch", path, told="is compressed")
    with open(path, "r+b") as file:
        file.truncate(2**40)
    in_both(run, folder, "--batch", path, told="is too large")
    in_both(run, folder, "--batch", "/dev/zero", told="is no ordinary file")
    in_both(run, folder, "--batch", folder, told="is no ordinary file")
    in_both(run, folder, "--batch", "a\0b", told="cannot read")


def test_the_copy_is_removed(run, folder, tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    assert run("checkup", folder)[0] == 0
    change(folder, architectures=["Own"])
    refused(run("checkup", folder))
    assert not list((tmp_path / "temporary").iterdir())


ODD = [
    None, True, -1, 0, 1, 2, 7, 10**5, 10**7, 10**9, 2**63, 10**30, 0.5, -1e308, float("nan"), float("inf"), "",
    "own.Own", "kernels-community/own", "../..", "/dev/zero", "os.system", "float64", "load", "auto", [], [10**9],
    [None], {}, {"": {}}, {"type": "own"}, {"rope_type": "own", "factor": 10**12}, ["full_attention"] * 3,
    "x" * 10**4,
]  # fmt: skip
KEYS = [
    "architectures", "model_type", "dtype", "torch_dtype", "hidden_size", "intermediate_size", "num_hidden_layers",
    "head_dim", "num_attention_heads", "num_key_value_heads", "vocab_size", "max_position_embeddings", "hidden_act",
    "rope_parameters", "rope_scaling", "rope_theta", "pad_token_id", "tie_word_embeddings", "attention_bias",
    "rms_norm_eps", "initializer_range", "id2label", "num_labels", "problem_type", "is_encoder_decoder",
    "use_cache", "output_attentions", "return_dict", "auto_map", "text_config", "vision_config", "per_layer_config",
    "layer_types", "sliding_window", "chunk_size_feed_forward", "pruned_heads", "tokenizer_class",
    "quantization_config", "fusion_config", "__class__", "_attn_implementation", "backbone", "name_or_path",
]  # fmt: skip
KINDS = ["llama", "bert", "gpt2", "albert", "t5", "mistral", "llava", "swin", "mixtral", "timm_wrapper", "rag", "own"]


@pytest.mark.xdist_group("folders")
def test_configurations_by_chance(run, model, tmp_path, monkeypatch):
    """Whatever stands in them: a result or one sentence, and never this machine's memory."""
    asked = tmp_path / "asked"
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: asked.touch() or [])
    path = shutil.copytree(model, tmp_path / "folder")
    good = {name: json.loads((path / name).read_text("utf-8")) for name in ("config.json", "tokenizer_config.json")}
    codes = set()
    for seed, rng in attempts(12):
        spoilt = copy.deepcopy(good)
        for _ in range(rng.integers(1, 4)):
            name = "tokenizer_config.json" if rng.random() < 0.2 else "config.json"
            known = sorted(spoilt[name]) if rng.random() < 0.3 else KEYS
            spoilt[name][known[rng.integers(len(known))]] = ODD[rng.integers(len(ODD))]
        if rng.random() < 0.3:
            spoilt["config.json"]["model_type"] = KINDS[rng.integers(len(KINDS))]
            spoilt["config.json"]["architectures"] = []
        for name, value in spoilt.items():
            (path / name).write_text(json.dumps(value), "utf-8")
        code, out, err = run("checkup", path, stdin=CONSENT)
        said = f"SOFTSCOPE_ATTACK_SEED={seed}: {spoilt} gave {code}, {err}"
        assert code in (0, 1, 2), said
        assert (out == "" and err.count("\n") == 1) if code == 2 else (out and not err), said
        assert not asked.exists(), said
        codes.add(code)
    assert 2 in codes
