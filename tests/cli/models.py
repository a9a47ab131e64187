"""Tiny random Hugging Face models in folders, made on the spot: nothing is downloaded."""

SIZES = {"vocab_size": 64, "max_position_embeddings": 64}
LLAMA = SIZES | {
    "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2,
}  # fmt: skip


def save(path, kind, tokenizer=True):
    """Write a model of the kind, with a tokenizer of letters, to a folder."""
    import tokenizers
    import torch
    import transformers

    torch.manual_seed(0)
    if kind == "llama":
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA))
    elif kind == "bert":
        model = transformers.BertModel(
            transformers.BertConfig(
                **SIZES, hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4
            )
        )
    transformers.utils.logging.disable_progress_bar()  # otherwise it prints in the first test that uses it
    model.save_pretrained(path)
    transformers.utils.logging.enable_progress_bar()
    if tokenizer:
        words = {"<s>": 0, "<unk>": 1} | {chr(97 + i): i + 2 for i in range(26)}
        plain = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<unk>"))
        plain.pre_tokenizer = tokenizers.pre_tokenizers.Split("", "isolated")
        transformers.PreTrainedTokenizerFast(
            tokenizer_object=plain, bos_token="<s>", unk_token="<unk>"
        ).save_pretrained(path)  # fmt: skip
    return path
