"""Words of `softscope glossary`."""

GLOSSARY: dict[str, tuple[str, str]] = {
    "glossary.summary": ("The terms in Chinese, English, symbol and code.", "术语的中文、英文、符号和代码名。"),
    "glossary.description": (
        "The terms that every text of softscope uses: English, Chinese, symbol and code name.",
        "softscope 的所有文字都用这些术语：英文、中文、符号和代码名。",
    ),
    "glossary.argument.term": (
        "One term, in English, Chinese or code; without it, all.",
        "某个术语，写英文、中文或代码名都可以；不写则列出全部。",
    ),
    "glossary.example.one": ("One term.", "一个术语。"),
    "glossary.column.en": ("English", "英文"),
    "glossary.column.zh": ("Chinese", "中文"),
    "glossary.column.symbol": ("symbol", "符号"),
    "glossary.column.code": ("code", "代码"),
    "glossary.unknown": (
        "the glossary has no {term}; softscope glossary lists all it has",
        "术语表里没有 {term}；用 softscope glossary 列出全部",
    ),
}
