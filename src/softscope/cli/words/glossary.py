"""Words of `softscope glossary`."""

from softscope._text import Text

GLOSSARY: dict[str, Text] = {
    "glossary.summary": Text(
        en="List the terms: English, Chinese, symbol and code name.", zh="列出术语：英文、中文、符号和代码名。"
    ),
    "glossary.description": Text(
        en="The terms that all of softscope's texts use: English, Chinese, symbol and code name.",
        zh="softscope 的所有文字都用这些术语：英文、中文、符号和代码名。",
    ),
    "glossary.argument.term": Text(
        en="One term, in English, in Chinese or as a code name; default: all.",
        zh="某个术语，写英文、中文或代码名都可以；默认列出全部。",
    ),
    "glossary.example.one": Text(en="One term.", zh="一个术语。"),
    "glossary.column.en": Text(en="English", zh="英文"),
    "glossary.column.zh": Text(en="Chinese", zh="中文"),
    "glossary.column.symbol": Text(en="symbol", zh="符号"),
    "glossary.column.code": Text(en="code", zh="代码"),
    "glossary.unknown": Text(
        en="the glossary has no {term}; softscope glossary lists all terms",
        zh="术语表里没有 {term}；用 softscope glossary 列出全部",
    ),
}
