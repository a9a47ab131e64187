"""`softscope checkup` on a model: a local Hugging Face folder, or module:function."""

import json
import os
import re
import sys

import pytest

from cli import models
from softscope._text import LANGS

torch = pytest.importorskip("torch")
CHINESE = re.compile(r"[\u3400-\u9fff]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny random model of each kind, with a tokenizer of letters."""
    pytest.importorskip("transformers", reason="pip install transformers to test folders")
    made = {}

    def make(kind, tokenizer=True):
        if (kind, tokenizer) not in made:
            made[kind, tokenizer] = models.save(tmp_path_factory.mktemp(f"{kind}-{tokenizer}"), kind, tokenizer)
        return made[kind, tokenizer]

    return make


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a module that module:function can import."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    names = []

    def write(code, name="patient_of_test"):
        (tmp_path / f"{name}.py").write_text("import torch\nfrom torch import nn\n" + code, "utf-8")
        names.append(name)
        sys.modules.pop(name, None)
        return name

    yield write
    for name in names:
        sys.modules.pop(name, None)


BUILD = """
def build():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 4, 16, 0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    return model, 2 * torch.randn(6, 12, 16), lambda output, batch: (output - batch.roll(1, 1)).pow(2).mean()

def blind():
    return build()[:2]

def spoiled():
    model, batch, _ = build()
    with torch.no_grad():
        model.layers[1].self_attn.in_proj_weight[4:8] *= 100
    return {"model": model, "batch": batch}

def trained():
    model, batch, loss = build()
    return model, batch, loss, torch.optim.SGD(model.parameters(), lr=0.1)
"""


def test_a_causal_model_is_judged_with_its_loss(run, folder, capsys):
    folder("llama")
    capsys.readouterr()  # drop the output of making it
    code, out, err = run("checkup", folder("llama"), "--format", "json")
    assert (code, err) == (0, "")
    (case,) = json.loads(out)["cases"]
    assert [site["name"] for site in case["sites"]] == ["model.layers.0.self_attn", "model.layers.1.self_attn"]
    assert [site["kv_heads"] for site in case["sites"]] == [2, 2]
    assert len(case["heads"]) == 8
    assert {head["state"] for head in case["heads"]} == {"learning"}, "random and uniform: nothing is blocked"
    assert case["readings"] == 3


def test_an_encoder_has_no_loss_and_starvation_is_not_judged(run, folder, capsys):
    folder("bert")
    capsys.readouterr()
    code, out, err = run("checkup", folder("bert"))
    assert (code, err) == (0, "")
    assert "Without a loss, the doctor cannot tell whether 8 heads are starving" in " ".join(out.split())
    _, out, _ = run("checkup", folder("bert"), "--lang", "zh")
    assert "不等于健康" in out


@pytest.mark.parametrize("words", [("--text", "the quick brown fox jumps over the lazy dog " * 8), ("--batch", "b.pt")])
def test_text_and_batch(run, folder, words, tmp_path, monkeypatch):
    path = folder("llama", tokenizer="--text" in words)
    monkeypatch.chdir(tmp_path)
    torch.save(torch.randint(64, (6, 40)), "b.pt")
    assert run("checkup", path, *words)[0] == 0
    torch.save({"input_ids": torch.randint(64, (2, 40)), "attention_mask": torch.ones(2, 40).long()}, "b.pt")
    assert run("checkup", path, *words)[0] == 0


def test_a_text_file_a_report_and_settings(run, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("ein kleiner text " * 40, "utf-8")
    assert run("checkup", folder("llama"), "--text-file", "a.txt", "--report", "a.html")[0] == 0
    page = (tmp_path / "a.html").read_text("utf-8")
    assert "model.layers.1.self_attn" in page


def test_weights_from_a_pickle_of_tensors_load_and_nothing_else_runs(run, folder, tmp_path):
    """pytorch_model.bin is a pickle: tensors are loaded, and an object that would run code is refused."""
    import shutil

    source = folder("llama")
    path = tmp_path / "pickled"
    shutil.copytree(source, path)
    from safetensors.torch import load_file

    weights = load_file(path / "model.safetensors")
    (path / "model.safetensors").unlink()
    torch.save(weights, path / "pytorch_model.bin")
    assert run("checkup", path)[0] == 0

    class Malicious:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "ran"),))

    torch.save({"model.embed_tokens.weight": Malicious()}, path / "pytorch_model.bin")
    torch.save(Malicious(), tmp_path / "b.pt")
    for words in ([path], [source, "--batch", tmp_path / "b.pt"]):
        for lang in LANGS:
            complaint(
                run("checkup", *words, "--lang", lang), "a pickle with more than tensors, and loading it could", lang
            )
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("architecture", ["LlamaForCausalLM", None])
def test_every_loader_is_told_to_stay_here_and_run_nothing(run, folder, tmp_path, monkeypatch, architecture):
    """Current transformers refuses such pickles by itself; our request must not rely on that."""
    import shutil

    path = tmp_path / "told"
    shutil.copytree(folder("llama"), path)
    config = json.loads((path / "config.json").read_text("utf-8"))
    (path / "config.json").write_text(json.dumps(config | {"architectures": [architecture] if architecture else []}))
    transformers = pytest.importorskip("transformers")
    told = []
    for loader in (getattr(transformers, architecture or "LlamaModel"), transformers.AutoConfig):
        load = loader.from_pretrained
        monkeypatch.setattr(
            loader, "from_pretrained", lambda *given, load=load, **asked: told.append(asked) or load(*given, **asked)
        )
    assert run("checkup", path)[0] == 0
    assert len(told) == 2
    for asked in told:
        assert asked["local_files_only"] is True
        assert asked["trust_remote_code"] is False
    assert told[1]["weights_only"] is True


def test_code_in_the_folder_never_runs(run, folder, tmp_path):
    import shutil

    path = tmp_path / "remote"
    shutil.copytree(folder("llama"), path)
    config = json.loads((path / "config.json").read_text("utf-8"))
    config |= {"model_type": "own", "architectures": ["Own"],
               "auto_map": {"AutoConfig": "own.OwnConfig", "AutoModel": "own.Own"}}  # fmt: skip
    (path / "config.json").write_text(json.dumps(config), "utf-8")
    (path / "own.py").write_text(f"import os\nos.mkdir({str(tmp_path / 'ran')!r})\n", "utf-8")
    code, out, err = run("checkup", path)
    assert (code, out) == (2, "")
    assert "does not load" in err
    assert not (tmp_path / "ran").exists()


def broken(folder, tmp_path, kind):
    import shutil

    path = tmp_path / kind
    if kind == "empty":
        path.mkdir()
        return path
    shutil.copytree(folder("llama", tokenizer=kind != "no tokenizer"), path)
    if kind == "no weights":
        (path / "model.safetensors").unlink()
    elif kind == "other weights":
        config = json.loads((path / "config.json").read_text("utf-8"))
        (path / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 3}), "utf-8")
    elif kind == "cut":
        (path / "model.safetensors").write_bytes((path / "model.safetensors").read_bytes()[:100])
    elif kind == "nan":
        from safetensors.torch import load_file, save_file

        weights = load_file(path / "model.safetensors")
        weights["model.norm.weight"][0] = float("nan")
        save_file(weights, path / "model.safetensors", metadata={"format": "pt"})
    return path


@pytest.mark.parametrize(
    ("kind", "words", "told"),
    [
        ("empty", [], "has no config.json"),
        ("no weights", [], "does not load"),
        ("cut", [], "does not load"),
        ("other weights", [], "weights of the model are missing from"),
        ("no tokenizer", [], "pass tokens with --batch or module:function"),
        ("nan", [], "the loss is nan"),
        ("fine", ["--text", "short"], "the text has 5 tokens, but three readings need at least 48"),
        ("fine", ["--text", "a", "--text-file", "b"], "pass only one of them"),
        ("fine", ["--text-file", "none.txt"], "cannot read the text in none.txt"),
        ("fine", ["--batch", "none.pt"], "cannot read the batch in none.pt"),
        ("fine", ["--batch", "list.pt"], "must hold a tensor of input_ids or a dictionary of tensors, but holds list"),
        ("fine", ["--batch", "large.pt"], "the model failed when called"),
    ],
)
@pytest.mark.parametrize("lang", LANGS)
def test_mistakes_with_a_folder(run, folder, tmp_path, monkeypatch, kind, words, told, lang):
    path = broken(folder, tmp_path, kind)
    monkeypatch.chdir(tmp_path)
    torch.save([1, 2], "list.pt")
    torch.save(torch.full((3, 5), 99), "large.pt")
    complaint(run("checkup", path.name, *words, "--lang", lang), told, lang)


def complaint(answer, told, lang):
    code, out, err = answer
    assert (code, out) == (2, "")
    assert err.count("\n") == 1, err
    assert err.startswith("softscope: ")
    assert bool(CHINESE.search(err)) == (lang == "zh")
    if lang == "en":
        assert told in err


def test_without_transformers(run, folder, monkeypatch):
    path = folder("llama")
    monkeypatch.setitem(sys.modules, "transformers", None)
    for lang in LANGS:
        complaint(run("checkup", path, "--lang", lang), "pip install transformers", lang)


def test_a_function(run, module):
    name = module(BUILD)
    code, out, err = run("checkup", f"{name}:build", "--format", "json")
    assert (code, err) == (0, "")
    (case,) = json.loads(out)["cases"]
    assert len(case["heads"]) == 8
    assert case["readings"] == 3
    assert "unjudged" not in {head["state"] for head in case["heads"]}
    code, out, _ = run("checkup", f"{name}:blind")
    assert code == 0
    assert "Without a loss" in out
    assert run("checkup", f"{name}:trained", "--format", "html")[1].startswith("<!doctype html>")


def test_a_function_with_a_finding_fails(run, module, tmp_path):
    name = module(BUILD)
    code, out, _ = run("checkup", f"{name}:spoiled")
    assert code == 1
    assert "layers.1.self_attn head 1" in out
    assert "remedies.qk_clip(model" in out
    assert run("checkup", f"{name}:spoiled", "--exit-zero")[0] == 0
    (tmp_path / "pyproject.toml").write_text("[tool.softscope]\nmute = ['SS003', 'SS004']", "utf-8")
    assert run("checkup", f"{name}:spoiled")[0] == 0


def test_weights_change_only_with_an_optimizer(module):
    from softscope.cli.checkup import function
    from softscope.doctor.examine import examine

    name = module(BUILD)
    for which, same in (("build", True), ("trained", False)):
        given = function.given(f"{name}:{which}")
        before = torch.cat([p.detach().clone().flatten() for p in given.model.parameters()])
        examine(given)
        after = torch.cat([p.detach().flatten() for p in given.model.parameters()])
        assert torch.equal(before, after) == same
        assert all(p.grad is None for p in given.model.parameters()) == same


@pytest.mark.parametrize(
    ("code", "words", "told"),
    [
        (BUILD, "no_such_module:build", "there is no module no_such_module"),
        (BUILD, "patient_of_test:nothing", "module patient_of_test has no function nothing"),
        ("def build(): return nn.Linear(2, 2)", "patient_of_test:build", "must return (model, batch)"),
        ("def build(): return {'model': nn.Linear(2, 2)}", "patient_of_test:build", "but got model;"),
        ("def build(): return {'modell': 1}", "patient_of_test:build", "but got a key 'modell';"),
        ("def build(): return 1, 2", "patient_of_test:build", "but got (int, int);"),
        ("def build(): raise OSError('no disk')", "patient_of_test:build", "failed (OSError: no disk)"),
        ("import nowhere_to_be_found", "patient_of_test:build", "No module named 'nowhere_to_be_found'"),
        ("def build(): return nn.Linear(2, 2), torch.ones(3, 2)", "patient_of_test:build", "no attention was found"),
        ("def build(): return nn.Linear(2, 2), torch.ones(3, 5)", "patient_of_test:build", "the model failed"),
        (
            "def build(): return nn.Linear(2, 2), torch.ones(3, 2), lambda o, b: o.sum() * float('nan')",
            "patient_of_test:build",
            "the loss is nan",
        ),
        (
            BUILD + "\ndef f(): return *blind(), lambda o, b: o",
            "patient_of_test:f",
            "one number with a gradient, but got Te",
        ),
        (BUILD + "\ndef f(): return *blind(), lambda o, b: 1.0", "patient_of_test:f", "a gradient, but got float;"),
        (
            BUILD + "\ndef f(): return *blind(), lambda o, b: o.detach().sum()",
            "patient_of_test:f",
            "requires_grad=False",
        ),
    ],
)
@pytest.mark.parametrize("lang", LANGS)
def test_mistakes_in_a_function(run, module, code, words, told, lang):
    module(code)
    complaint(run("checkup", words, "--lang", lang), told, lang)


def test_the_bar_goes_to_stderr(monkeypatch, capsys):
    from softscope import _progress_bar
    from softscope.cli import main
    from softscope.doctor import patients

    monkeypatch.setattr(patients, "STEPS", 20)
    monkeypatch.setattr(patients.train, "__kwdefaults__", {**patients.train.__kwdefaults__, "steps": 20})
    monkeypatch.setattr(_progress_bar, "PATIENCE", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    main(["checkup", "--format", "json", "--lang", "en"])
    out, err = capsys.readouterr()
    json.loads(out)
    assert "training [###" in err
    assert "100%" in err
    assert err.endswith("\r"), "wiped"
