"""Small mistakes in right answers, made by machine: one operator, constant, function or line changed at a time."""

import ast
import copy

_OPERATORS = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div, ast.Add),
    ast.Div: (ast.Mult,),
    ast.Pow: (ast.Mult,),
    ast.MatMult: (ast.Mult,),
}
_COMPARISONS = {
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Lt: (ast.LtE, ast.Gt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
}
_NAMES = {
    "max": ("min", "mean", "sum"),
    "min": ("max",),
    "exp": ("exp2", "expm1", "tanh"),
    "log": ("log2", "log1p", "log10"),
    "sum": ("max", "mean", "min"),
    "sqrt": ("cbrt", "square"),
    "ptp": ("max", "std"),
    "maximum": ("minimum",),
    "logaddexp": ("maximum", "add", "logaddexp2"),
    "cumsum": ("cumprod", "sort"),
    "argmax": ("argmin",),
    "flatnonzero": ("argwhere",),
    "shape": ("strides",),
    "peak": ("sharpness", "entropy"),
    "entropy": ("sharpness", "peak"),
}
_CONSTANTS = (lambda x: x + 1, lambda x: x - 1, lambda x: x * 2, lambda x: -x, lambda x: x + 0.01)


def mutants(source):
    """Yield each changed source once."""
    tree = ast.parse(source)
    seen = {ast.unparse(tree)}
    for place, node in enumerate(ast.walk(tree)):
        for change in _changes(node):
            changed = copy.deepcopy(tree)
            target = list(ast.walk(changed))[place]
            change(target)
            text = ast.unparse(ast.fix_missing_locations(changed))
            if text not in seen:
                seen.add(text)
                yield text


def _changes(node):
    """Return functions that each make one mistake in (a copy of) the node."""
    if isinstance(node, ast.BinOp):
        for other in _OPERATORS.get(type(node.op), ()):
            yield lambda n, other=other: setattr(n, "op", other())
        yield _swap
    if isinstance(node, ast.Compare):
        for other in _COMPARISONS.get(type(node.ops[0]), ()):
            yield lambda n, other=other: n.ops.__setitem__(0, other())
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        for other in _CONSTANTS:
            yield lambda n, other=other: setattr(n, "value", other(n.value))
    if isinstance(node, ast.Attribute):
        for other in _NAMES.get(node.attr, ()):
            yield lambda n, other=other: setattr(n, "attr", other)
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        for other in {"max": ("min", "sum"), "min": ("max",), "sum": ("max", "min")}.get(node.id, ()):
            yield lambda n, other=other: setattr(n, "id", other)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield lambda n: setattr(n, "op", ast.UAdd())
    if isinstance(node, ast.IfExp):
        yield lambda n: setattr(n, "test", ast.UnaryOp(ast.Not(), n.test))
        yield lambda n: setattr(n, "orelse", n.body)
        yield lambda n: setattr(n, "body", n.orelse)
    if isinstance(node, ast.If):
        yield lambda n: setattr(n, "test", ast.Constant(False))
    if isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        yield lambda n: setattr(n, "value", ast.BinOp(n.value, ast.Mult(), ast.Constant(2)))
        if isinstance(node.value, ast.Tuple):
            yield lambda n: n.value.elts.reverse()
    if isinstance(node, ast.BinOp):
        yield lambda n: (setattr(n, "op", ast.Mult()), setattr(n, "right", ast.Constant(1)))
        yield lambda n: (setattr(n, "op", ast.Mult()), setattr(n, "left", ast.Constant(1)))


def _swap(node):
    node.left, node.right = node.right, node.left
