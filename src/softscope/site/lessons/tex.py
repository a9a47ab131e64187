r"""Formulas as MathML, which a browser draws by itself: no script, no font to load.

It knows the part of TeX that the lessons use; a command it does not know is an error, so that no formula is lost.
"""

from __future__ import annotations

import html
import re
import xml.etree.ElementTree as ET
from typing import NamedTuple

SYMBOLS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ϵ", "varepsilon": "ε", "theta": "θ", "eta": "η",
    "lambda": "λ", "mu": "μ", "nu": "ν", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "ϕ", "varphi": "φ",
    "omega": "ω", "Delta": "Δ", "Sigma": "Σ", "Omega": "Ω", "Phi": "Φ", "Lambda": "Λ", "Gamma": "Γ", "ell": "ℓ",
    "infty": "∞", "partial": "∂", "nabla": "∇", "hbar": "ℏ", "emptyset": "∅", "top": "⊤",
}  # fmt: skip
OPERATORS = {
    "cdot": "·", "times": "×", "div": "÷", "pm": "±", "leq": "≤", "le": "≤", "geq": "≥", "ge": "≥", "neq": "≠",
    "ne": "≠",
    "approx": "≈", "sim": "∼", "equiv": "≡", "propto": "∝", "to": "→", "rightarrow": "→", "leftarrow": "←",
    "mapsto": "↦", "Rightarrow": "⇒", "Leftrightarrow": "⇔", "iff": "⇔", "implies": "⇒", "in": "∈", "notin": "∉",
    "subset": "⊂",
    "cup": "∪", "cap": "∩", "forall": "∀", "exists": "∃", "ldots": "…", "dots": "…", "cdots": "⋯", "mid": "∣", "|": "‖",
    "Vert": "‖", "lVert": "‖", "rVert": "‖", "lvert": "|", "rvert": "|", "langle": "⟨", "rangle": "⟩",
    "{": "{", "}": "}", "odot": "⊙", "otimes": "⊗", "oplus": "⊕", "ll": "≪", "gg": "≫", "star": "⋆", "circ": "∘",
    "%": "%", "_": "_",
    "$": "$", "longrightarrow": "⟶", "colon": ":", "lfloor": "⌊", "rfloor": "⌋", "lceil": "⌈", "rceil": "⌉",
    "prime": "′", "downarrow": "↓", "uparrow": "↑", "vdots": "⋮", "#": "#", "&": "&",
}  # fmt: skip
LARGE = {"sum": "∑", "prod": "∏", "int": "∫"}
FUNCTIONS = {"log", "ln", "exp", "max", "min", "tanh", "sin", "cos", "arg", "det", "lim", "sup", "inf", "dim", "Pr"}
SPACES = {
    ",": ".17em",
    ":": ".22em",
    ";": ".28em",
    "!": "-.17em",
    "quad": "1em",
    "qquad": "2em",
    " ": ".25em",
    "enspace": ".5em",
}
DOUBLE = {"C": "ℂ", "H": "ℍ", "N": "ℕ", "P": "ℙ", "Q": "ℚ", "R": "ℝ", "Z": "ℤ"}
ACCENTS = {"hat": "^", "bar": "¯", "overline": "¯", "tilde": "~", "vec": "→", "dot": "˙"}
SIZES = {"big", "Big", "bigl", "bigr", "Bigl", "Bigr", "bigg", "biggl", "biggr", "left", "right", "middle"}
IGNORED = {"displaystyle", "textstyle", "limits", "nolimits", "scriptstyle"}
ROWS = {
    "matrix": "",
    "pmatrix": "()",
    "bmatrix": "[]",
    "vmatrix": "||",
    "cases": "{",
    "aligned": "",
    "align": "",
    "array": "",
}
LETTERS = {"mathrm", "operatorname", "mathsf", "mathit", "mathcal", "mathbf", "boldsymbol", "bm", "mathtt"}


class _Piece(NamedTuple):
    markup: str
    large: bool = False


def mathml(source: str, *, display: bool = False) -> str:
    r"""Return a formula as a `<math>` element.

    >>> mathml(r"e^{x}")
    '<math><msup><mi>e</mi><mi>x</mi></msup></math>'
    """
    reader = _Reader(source)
    body = reader.row(())
    if reader.here() is not None:
        raise ValueError(f"a formula must close what it opens, but got {source!r}; look at its braces")
    attribute = ' display="block"' if display else ""
    return f"<math{attribute}>{body}</math>"


class _Reader:
    def __init__(self, source: str) -> None:
        self.source = source
        self.tokens = re.findall(r"\\[a-zA-Z]+|\\.|\d+(?:\.\d+)?|\s+|.", source, re.DOTALL)
        self.at = 0

    def here(self) -> str | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def take(self) -> str:
        token = self.here()
        if token is None:
            raise ValueError(f"a formula must not end in the middle, but got {self.source!r}")
        self.at += 1
        return token

    def spaces(self) -> None:
        while (token := self.here()) is not None and token.isspace():
            self.at += 1

    def row(self, until: tuple[str, ...]) -> str:
        """Read pieces up to one of these tokens, which stays."""
        made = ""
        self.spaces()
        while (token := self.here()) is not None and token not in until and token != "}":
            made += self.scripted()
            self.spaces()
        return made

    def scripted(self) -> str:
        base = self.atom()
        scripts: dict[str, str] = {}
        self.spaces()
        while (token := self.here()) in ("_", "^", "'"):
            self.take()
            if token == "'":
                scripts["^"] = scripts.get("^", "") + "<mo>′</mo>"
            else:
                assert token is not None
                self.spaces()
                scripts[token] = self.argument()
            self.spaces()
        low, high = scripts.get("_"), scripts.get("^")
        if low is None and high is None:
            return base.markup
        names = ("munder", "mover", "munderover") if base.large else ("msub", "msup", "msubsup")
        parts = base.markup + "".join(f"{_one(part)}" for part in (low, high) if part is not None)
        name = names[2] if low is not None and high is not None else names[0] if low is not None else names[1]
        return f"<{name}>{parts}</{name}>"

    def argument(self) -> str:
        """Read one argument: a group in braces, or a single piece."""
        self.spaces()
        if self.here() == "{":
            return self.group()
        return self.atom().markup

    def group(self) -> str:
        self.expect("{")
        made = self.row(())
        self.expect("}")
        return _one(made)

    def words(self) -> str:
        """Read a group as it stands; a single token needs no braces."""
        self.spaces()
        if self.here() != "{":
            return self.take()
        self.take()
        depth, made = 1, ""
        while True:
            token = self.take()
            depth += (token == "{") - (token == "}")
            if not depth:
                return made
            made += token

    def expect(self, wanted: str) -> None:
        token = self.take()
        if token != wanted:
            raise ValueError(f"a formula needs {wanted} there, but got {token!r} in {self.source!r}")

    def atom(self) -> _Piece:
        token = self.here()
        if token == "{":
            return _Piece(self.group())
        token = self.take()
        if token.startswith("\\"):
            return self.command(token[1:])
        if re.fullmatch(r"\d+(?:\.\d+)?", token):
            return _Piece(f"<mn>{token}</mn>")
        if token.isalpha():
            return _Piece(f"<mi>{token}</mi>")
        return _Piece(f"<mo>{ {'-': '−', '*': '∗', '~': ' '}.get(token, html.escape(token)) }</mo>")

    def command(self, name: str) -> _Piece:
        if name in SYMBOLS:
            return _Piece(f"<mi>{SYMBOLS[name]}</mi>")
        if name in OPERATORS:
            return _Piece(f"<mo>{html.escape(OPERATORS[name])}</mo>")
        if name in LARGE:
            return _Piece(f'<mo largeop="true" movablelimits="true">{LARGE[name]}</mo>', large=name != "int")
        if name in FUNCTIONS:
            return _Piece(f"<mi>{name}</mi>", large=name in ("max", "min", "lim", "sup", "inf"))
        if name in SPACES:
            return _Piece(f'<mspace width="{SPACES[name]}"></mspace>')
        if name in IGNORED:
            return _Piece("")
        if name in SIZES:
            return self.delimiter(name)
        if name in ("frac", "dfrac", "tfrac"):
            attribute = ' displaystyle="true"' if name == "dfrac" else ""
            return _Piece(f"<mfrac{attribute}>{self.argument()}{self.argument()}</mfrac>")
        if name == "sqrt":
            return _Piece(f"<msqrt>{self.argument()}</msqrt>")
        if name in ("text", "textrm", "mbox"):
            return _Piece(f"<mtext>{html.escape(self.words())}</mtext>")
        if name in ACCENTS:
            return _Piece(f"<mover>{self.argument()}<mo>{ACCENTS[name]}</mo></mover>")
        if name in ("underbrace", "underline"):
            return _Piece(
                f"<munder>{self.argument()}<mo>{'⏟' if name == 'underbrace' else '_'}</mo></munder>", large=True
            )
        if name in ("overbrace", "stackrel", "overset"):
            first = self.argument()
            made = (
                f"<mover>{first}<mo>⏞</mo></mover>"
                if name == "overbrace"
                else f"<mover>{self.argument()}{first}</mover>"
            )
            return _Piece(made, large=True)
        if name == "mathbb":
            return _Piece("".join(f"<mi>{DOUBLE.get(c, chr(0x1D538 + ord(c) - 65))}</mi>" for c in self.words()))
        if name in LETTERS:
            return self.letters(name)
        if name == "begin":
            return self.rows()
        raise ValueError(
            f"a formula may use the commands in softscope.site.lessons.tex, but got \\{name}; add it there"
        )

    def letters(self, name: str) -> _Piece:
        text = self.words()
        if re.search(r"[\\{}^_]", text):
            return _Piece(_one(_Reader(text).row(())))
        style = ' style="font-weight: bold"' if name in ("mathbf", "boldsymbol", "bm") else ""
        return _Piece(f'<mi mathvariant="normal"{style}>{html.escape(text)}</mi>')

    def delimiter(self, name: str) -> _Piece:
        self.spaces()
        token = self.take()
        sign = OPERATORS.get(token[1:], "") if token.startswith("\\") else token
        sign = "" if sign == "." else sign
        stretchy = "true" if name in ("left", "right", "middle") else "false"
        return _Piece(f'<mo stretchy="{stretchy}">{html.escape(sign)}</mo>')

    def rows(self) -> _Piece:
        kind = self.words().rstrip("*")
        if kind not in ROWS:
            raise ValueError(f"a formula may begin {', '.join(ROWS)}, but got {kind} in {self.source!r}")
        if kind == "array":
            self.words()  # its alignment
        made = [[""]]
        while True:
            made[-1][-1] += self.row(("&", "\\\\", "\\end"))
            token = self.take()
            if token == "\\end":
                self.words()
                break
            if token == "&":
                made[-1].append("")
            else:
                made.append([""])
        body = "".join(
            "<mtr>" + "".join(f"<mtd>{cell}</mtd>" for cell in row) + "</mtr>" for row in made if row != [""]
        )
        fence = [f"<mo>{sign}</mo>" for sign in ROWS[kind]]
        return _Piece(f"<mrow>{''.join(fence[:1])}<mtable>{body}</mtable>{''.join(fence[1:])}</mrow>")


def _one(markup: str) -> str:
    """Make a row of several elements one element, as scripts and fractions need."""
    return markup if len(ET.fromstring(f"<row>{markup}</row>")) == 1 else f"<mrow>{markup}</mrow>"
