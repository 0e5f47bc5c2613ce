"""JavaScript of compiled formulas, which are functions of numbers, with JavaScript's own operators."""

from __future__ import annotations

import ast


def number_source(function: ast.FunctionDef) -> str:
    r"""Write a compiled formula, a function of numbers, with JavaScript's own operators.

    >>> tree = ast.parse("def f(a, b):\n    t0 = (-(-(a)//(b)))\n    return (t0, Maximum(a, 2))")
    >>> number_source(tree.body[0])
    '(a,b)=>{const t0=(-Math.floor((-a)/b));return [t0,Math.max(a,2)];}'
    """
    names = ",".join(argument.arg for argument in function.args.args)
    lines = []
    for part in function.body:
        if isinstance(part, ast.Assign):
            lines.append(f"const {ast.unparse(part.targets[0])}={_number(part.value)};")
        elif isinstance(part, ast.Return) and part.value is not None:
            lines.append(f"return {_number(part.value)};")
    return f"({names})=>{{{''.join(lines)}}}"


NUMBER_CALLS = {"Maximum": "Math.max", "Minimum": "Math.min", "SumOfFloors": "floorSumNumber", "Ratio": "over"}


def _number(node: ast.expr) -> str:
    if isinstance(node, ast.Tuple):
        return f"[{','.join(map(_number, node.elts))}]"
    if isinstance(node, ast.BinOp):
        left, right = _number(node.left), _number(node.right)
        if isinstance(node.op, ast.FloorDiv):
            return f"Math.floor({left}/{right})"
        if isinstance(node.op, ast.Pow):
            return f"({left}**{right})"
        return f"({left}{ {ast.Add: '+', ast.Sub: '-', ast.Mult: '*'}[type(node.op)] }{right})"
    if isinstance(node, ast.UnaryOp):
        return f"(-{_number(node.operand)})"
    if isinstance(node, ast.Call):
        return f"{NUMBER_CALLS[ast.unparse(node.func)]}({','.join(map(_number, node.args))})"
    if isinstance(node, ast.Name | ast.Constant):
        return ast.unparse(node)
    raise NotImplementedError(ast.unparse(node))
