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
    "checkup.folder.weights.kind": Text(
        en="{path} must hold weights by name, but holds {came}; save the model again with save_pretrained",
        zh="{path} 里应当是按名字存放的权重，却是 {came}；请用 save_pretrained 重新保存模型",
    ),
    "checkup.folder.class": Text(
        en="config.json names the class {name}, but transformers has no such model for model_type {kind}; correct "
        "architectures, or load the model in your own code and pass module:function",
        zh="config.json 写的类是 {name}，但 transformers 里 model_type 为 {kind} 的模型没有这个类；请改正 "
        "architectures，或在自己的代码里加载模型，再用 module:function",
    ),
    "checkup.folder.quantized": Text(
        en="the model in {path} is quantized, and loading it takes packages that its config.json chooses; load it in "
        "your own code and pass module:function",
        zh="{path} 里的模型是量化的，加载它要用到由 config.json 指定的软件包；请在自己的代码里加载它，再用 "
        "module:function",
    ),
    "checkup.folder.adapter": Text(
        en="the model in {path} has an adapter, which names its own base model; load both in your own code and pass "
        "module:function",
        zh="{path} 里的模型带有适配器，而适配器自己指定基础模型；请在自己的代码里加载两者，再用 module:function",
    ),
    "checkup.folder.number": Text(
        en="{name} in config.json must be at most {most}, but got {value}; correct it, or load the model in your own "
        "code and pass module:function",
        zh="config.json 里的 {name} 最大为 {most}，却写了 {value}；请改正，或在自己的代码里加载模型，再用 "
        "module:function",
    ),
    "checkup.folder.size": Text(
        en="config.json describes a model of at least {need}, but its weights take {have}; they do not belong "
        "together, so check both",
        zh="config.json 描述的模型至少要 {need}，而权重只有 {have}；两者不相配，请检查",
    ),
    "checkup.folder.modules": Text(
        en="config.json describes a model of more than {most} modules; correct it, or load the model in your own code "
        "and pass module:function",
        zh="config.json 描述的模型超过 {most} 个模块；请改正，或在自己的代码里加载模型，再用 module:function",
    ),
    "checkup.folder.memory": Text(
        en="the model takes at least {need} of memory, but this machine has {have} left; use a smaller model or a "
        "larger machine",
        zh="这个模型至少要 {need} 内存，而本机只剩 {have}；请用小一些的模型，或内存大一些的机器",
    ),
    "checkup.folder.index": Text(
        en="{path} must list files beside it, but got {part}; save the model again with save_pretrained",
        zh="{path} 里列出的文件应当和它在同一目录，收到的却是 {part}；请用 save_pretrained 重新保存模型",
    ),
    "checkup.folder.ended": Text(
        en="reading {path} was stopped ({ended}): it may take {seconds} s of processor time and {memory}; if you trust "
        "it, load it in your own code and pass module:function",
        zh="读取 {path} 时被中止（{ended}）：最多允许 {seconds} 秒处理器时间和 {memory} 内存；如果信得过它，请在自己的"
        "代码里加载，再用 module:function",
    ),
    "checkup.file.unreadable": Text(
        en="cannot read {path}: {reason}; give one that can be read", zh="无法读取 {path}：{reason}；请换一个能读的"
    ),
    "checkup.file.kind": Text(
        en="{path} is no ordinary file but a folder, a pipe or a device; give a file",
        zh="{path} 不是普通文件，而是目录、管道或设备；请给出文件",
    ),
    "checkup.file.large": Text(
        en="{path} is too large: {size}, but {most} is the limit; give less",
        zh="{path} 太大：{size}，上限是 {most}；请给小一些的",
    ),
    "checkup.file.packed": Text(
        en="{path} is compressed, and could unfold into any size; write it with torch.save, which does not compress",
        zh="{path} 是压缩过的，展开后可能有任意大；请用 torch.save 写，它不压缩",
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
    "checkup.text.large": Text(
        en="the text in {path} is larger than {most}; give a shorter one, a page is enough",
        zh="{path} 里的文字超过 {most}；请给短一些的，一页就够",
    ),
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
    "checkup.batch.layout": Text(
        en="{path} must hold plain tensors, but {name} is {came}; save it as a dense tensor on the CPU",
        zh="{path} 里应当是普通张量，而 {name} 是 {came}；请存成 CPU 上的稠密张量",
    ),
    "checkup.batch.none": Text(
        en="{function} must return at least one batch, but got an empty list; return a batch or a list of some",
        zh="{function} 至少要返回一个 batch，收到的却是空列表；请返回一个 batch，或由若干个组成的列表",
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
    "checkup.progress.remedies": Text(en="trying remedies", zh="试治疗办法"),
    "checkup.progress.trial": Text(en="trying suspected heads", zh="试可疑的头"),
    "checkup.progress.model": Text(en="reading", zh="读取中"),
}
