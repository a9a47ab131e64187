"""Words of `softscope checkup` for models: from a folder, and from the user's own code."""

from softscope._text import Text

MODEL: dict[str, Text] = {
    "checkup.option.text": Text(
        en="The text for a model from a folder to read; default: a short one in English and Chinese.",
        zh="让目录里的模型读的文字；默认用一小段中英文。",
    ),
    "checkup.option.text_file": Text(en="The same, from a UTF-8 file.", zh="同上，从文件里读，UTF-8 编码。"),
    "checkup.option.batch": Text(
        en="Model input instead of text: a file written by torch.save that holds input_ids or a dictionary of tensors.",
        zh="不用文字，直接给模型的输入：torch.save 写的文件，里面是 input_ids，或由张量组成的字典。",
    ),
    "checkup.example.folder": Text(en="A model from a local folder.", zh="本地目录里的模型。"),
    "checkup.example.function": Text(
        en="Your own model: build() in mymodel.py returns (model, batch, loss).",
        zh="自己的模型：mymodel.py 里有函数 build()，返回 (model, batch, loss)。",
    ),
    "checkup.transformers": Text(
        en="a model from a folder needs transformers, which is not installed: pip install transformers",
        zh="检查目录里的模型需要 transformers，但没有安装：pip install transformers",
    ),
    "checkup.model.torch": Text(
        en="checking a model needs PyTorch, which is not installed: pip install 'softscope[torch]'",
        zh="检查模型需要 PyTorch，但没有安装：pip install 'softscope[torch]'",
    ),
    "checkup.folder.config": Text(
        en="{path} has no config.json, so it is not a Hugging Face model; pass the folder that save_pretrained wrote, "
        "or use module:function",
        zh="{path} 里没有 config.json，不是 Hugging Face 的模型；请写 save_pretrained 写出的目录，或改用 "
        "module:function",
    ),
    "checkup.folder.load": Text(
        en="the model in {path} does not load ({reason}); load it in your own code and pass module:function",
        zh="{path} 里的模型加载不了（{reason}）；请在自己的代码里加载它，再用 module:function",
    ),
    "checkup.folder.pickle": Text(
        en="{path} holds a pickle with more than tensors, and loading it could run code; save it again, with "
        "safetensors or tensors only",
        zh="{path} 里的 pickle 不只有张量，加载它可能会运行代码；请用 safetensors 重新保存，或只存张量",
    ),
    "checkup.folder.weights": Text(
        en="{count} weights of the model are missing from {path}, the first is {name}, and would be random; save the "
        "whole model, or use module:function",
        zh="模型有 {count} 个权重不在 {path} 里，第一个是 {name}，它们只能是随机数；请保存完整的模型，或改用 "
        "module:function",
    ),
    "checkup.folder.tokenizer": Text(
        en="{path} has no tokenizer that loads ({reason}); save it there, or pass tokens with --batch or "
        "module:function",
        zh="{path} 里没有能加载的分词器（{reason}）；请把它也存进去，或用 --batch 或 module:function 直接给出词元",
    ),
    "checkup.text.short": Text(
        en="the text has {count} tokens, but three readings need at least {least}; give a longer one",
        zh="文字只有 {count} 个词元，三次读数至少要 {least} 个；请给长一些的",
    ),
    "checkup.text.file": Text(en="cannot read the text in {path}: {reason}", zh="无法读取 {path} 里的文字：{reason}"),
    "checkup.text.needless": Text(
        en="{option} is for a model from a folder, but {path} is not one; leave it out",
        zh="{option} 只用于目录里的模型，而 {path} 不是；请去掉",
    ),
    "checkup.text.several": Text(
        en="--text, --text-file and --batch each say what the model reads; pass only one of them",
        zh="--text、--text-file 和 --batch 都是说让模型读什么；请只写一个",
    ),
    "checkup.batch.unreadable": Text(
        en="cannot read the batch in {path} ({reason}); write it with torch.save, tensors only",
        zh="无法读取 {path} 里的输入（{reason}）；请用 torch.save 写，只放张量",
    ),
    "checkup.batch.wrong": Text(
        en="{path} must hold a tensor of input_ids or a dictionary of tensors, but holds {came}; save one of these",
        zh="{path} 里应当是 input_ids 张量或由张量组成的字典，却是 {came}；请存成其中一种",
    ),
    "checkup.function.module": Text(
        en="there is no module {module} ({reason}); run from a folder where it can be imported, or set PYTHONPATH",
        zh="没有模块 {module}（{reason}）；请在能导入它的目录里运行，或设置 PYTHONPATH",
    ),
    "checkup.function.absent": Text(
        en="module {module} has no function {name}; name the one that returns the model and the batch",
        zh="模块 {module} 里没有函数 {name}；请写返回模型和输入的那个函数",
    ),
    "checkup.function.failed": Text(
        en="{function} failed ({reason}); fix it and try again", zh="{function} 出错了（{reason}）；请改好再试"
    ),
    "checkup.function.returned": Text(
        en="{function} must return (model, batch), (model, batch, loss) or (model, batch, loss, optimizer), or a "
        "dictionary with these names, but got {came}; see softscope checkup --help",
        zh="{function} 应当返回 (model, batch)、(model, batch, loss) 或 (model, batch, loss, optimizer)，或以这些为键的"
        "字典，收到的却是 {came}；见 softscope checkup --help",
    ),
    "checkup.model.failed": Text(
        en="the model failed when called ({reason}); check that model and batch match, and use module:function if "
        "necessary",
        zh="调用模型时出错（{reason}）；请检查模型和输入是否相配，必要时用 module:function",
    ),
    "checkup.model.loss": Text(
        en="the loss is {value}, so nothing based on it can be judged; look for NaN in the weights and the batch, or "
        "leave the loss out",
        zh="损失是 {value}，由它得来的一切都无法判断；请在权重和输入里找 NaN，或不给损失",
    ),
    "checkup.model.loss.kind": Text(
        en="the loss must be a tensor of one number with a gradient, but got {came}; return a mean or a sum of the "
        "model's output, or leave the loss out",
        zh="损失必须是带梯度、只有一个数的张量，收到的却是 {came}；请返回模型输出的平均或总和，或不给损失",
    ),
    "checkup.model.blind": Text(
        en="no attention was found in {path}: {reason}; see the help of softscope.probe for what it can see",
        zh="在 {path} 里没有找到注意力：{reason}；哪些能看到，见 softscope.probe 的说明",
    ),
    "checkup.model.title": Text(
        en="{path}: {heads} heads in {sites} place(s), {readings} readings",
        zh="{path}：{sites} 处共 {heads} 个头，{readings} 次读数",
    ),
    "checkup.model.none": Text(en="no module computes it", zh="没有模块在计算它"),
    "checkup.progress.patients": Text(en="training", zh="训练中"),
    "checkup.progress.model": Text(en="reading", zh="读取中"),
}
