"""Attention that is computed step by step: a product of queries and keys, a softmax over it, a product with the values.

Found by shapes: in the module of a softmax over matrices, a product that gives matrices of that size and one that takes
them. Everything in the module that reads or writes them belongs to it, forward and backward.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from tb_dlprof_plugin.advice.rule_context import RuleContext
from tb_dlprof_plugin.model.dtypes import precision_of_dtypes
from tb_dlprof_plugin.model.lookup import take_or
from tb_dlprof_plugin.model.profile import Bools, CallKind, Role
from tb_dlprof_plugin.model.shapes import InputShapes, Shape, shape_at, tensors_of
from tb_dlprof_plugin.names.ops import COPY

MATH = "aten::_scaled_dot_product_attention_math"
_SOFTMAX = frozenset({"aten::_softmax", "aten::_safe_softmax"})
_PRODUCTS = {"aten::bmm": 0, "aten::baddbmm": 1, "aten::baddbmm_": 1}
"""Batched products, with the position of their first factor."""
_MEAN = "aten::mean"
_MASKS = frozenset({"aten::masked_fill", "aten::masked_fill_", "aten::where"})
_DROPOUT = frozenset({"aten::native_dropout", "aten::bernoulli_", "aten::dropout"})
_LEAST_DIMENSIONS = 3
_GRADIENTS = 4
"""Products in a backward pass: the gradients of queries, keys, weights and values."""


@dataclass(frozen=True)
class Attention:
    """One attention of a module; masks over `Profile.launches`.

    Attributes:
        module: its path.
        batch: number of matrices (batch size times heads).
        queries, keys, depth: lengths of the sequences, size of a head.
        precision: of the products' inputs.
        by_math: whether `scaled_dot_product_attention` computed it, by its backend without fused kernels.
        masked, dropout, averaged: whether there is a mask, a dropout, and a mean over the weights.
        forward_calls, backward_calls: how often it runs in a step; the latter 0 without a backward pass.
        forward, backward: the two products and those of their gradients.
        others: what else reads or writes the matrices.
        copies: what brings the products' factors into another layout, which fused kernels do not need.
    """

    module: str
    batch: int
    queries: int
    keys: int
    depth: int
    precision: str
    by_math: bool
    masked: bool
    dropout: bool
    averaged: bool
    forward_calls: float
    backward_calls: float
    forward: Bools
    backward: Bools
    others: Bools
    copies: Bools

    @property
    def launches(self) -> Bools:
        """All of it."""
        every: Bools = self.forward | self.backward | self.others | self.copies
        return every

    @property
    def flops(self) -> int:
        """Of the two forward products."""
        return 4 * self.batch * self.queries * self.keys * self.depth

    @property
    def values(self) -> int:
        """Elements of queries, keys, values and outputs together."""
        return 2 * self.batch * (self.queries + self.keys) * self.depth


def attentions(context: RuleContext) -> list[Attention]:
    """What the selected iterations launched for each attention that is not fused."""
    profile = context.profile
    ops, strings = profile.ops, profile.strings
    is_op = ops.kind == CallKind.OP
    softmax = np.array([strings[name] in _SOFTMAX for name in ops.name.tolist()], dtype=np.bool_) & is_op
    forward = np.flatnonzero(softmax & (ops.role == Role.FORWARD))
    sizes: dict[int, set[Shape]] = defaultdict(set)
    for op in forward.tolist():
        shape = shape_at(profile.shapes_of(op), 0)
        if shape is not None and len(shape) >= _LEAST_DIMENSIONS and min(shape) > 0:
            sizes[int(ops.module[op])].add((math.prod(shape[:-2]), *shape[-2:]))
    found = []
    for module, shapes in sizes.items():
        members = [
            (op, _matrices(profile.shapes_of(op))) for op in np.flatnonzero(is_op & (ops.module == module)).tolist()
        ]
        for size in shapes:
            attention = _attention(context, module, size, members)
            if attention is not None:
                found.append(attention)
    return found


def _attention(
    context: RuleContext, module: int, size: Shape, members: list[tuple[int, list[Shape]]]
) -> Attention | None:
    ops, strings = context.profile.ops, context.profile.strings
    batch, queries, keys = size
    gives, takes, products, others = -1, -1, [], []
    for op, matrices in members:
        name = strings[ops.name[op]]
        if name in _PRODUCTS:
            factors = matrices[_PRODUCTS[name] :]
            if len(factors) < 2:
                continue
            result = (factors[0][0], factors[0][1], factors[1][2])
            of_forward = ops.role[op] == Role.FORWARD
            if of_forward and result == size:
                gives = op
            elif of_forward and factors[0] == size:
                takes = op
            if _same(result, size) or any(_same(factor, size) for factor in factors[:2]):
                products.append(op)
        elif any(_same(matrix, size) for matrix in matrices):
            others.append(op)
    if gives < 0 or takes < 0:
        return None
    names = {strings[ops.name[op]] for op in others}
    factors = _matrices(context.profile.shapes_of(gives))[_PRODUCTS[strings[ops.name[gives]]] :]
    made = context.view.selected_calls(context.selection) / context.selection.count
    per_op = np.bincount(context.profile.calls.op, weights=made, minlength=len(ops))
    gradients = [op for op in products if ops.role[op] == Role.BACKWARD]
    row = context.view.launch_op
    mine = context.view.selected_launches(context.selection)
    of_products = mine & np.isin(row, products)
    role = ops.role[np.maximum(row, 0)]
    return Attention(
        module=strings[module],
        batch=batch,
        queries=queries,
        keys=keys,
        depth=factors[0][2],
        precision=precision_of_dtypes(context.profile.dtypes_of(gives)),
        by_math=_inside_math(context, gives),
        masked=bool(names & _MASKS),
        dropout=bool(names & _DROPOUT),
        averaged=_MEAN in names,
        forward_calls=float(per_op[gives]),
        backward_calls=float(per_op[gradients].sum()) / _GRADIENTS,
        forward=of_products & (role != Role.BACKWARD),
        backward=of_products & (role == Role.BACKWARD),
        others=mine & np.isin(row, others),
        copies=mine & _copies(context, of_products),
    )


def _copies(context: RuleContext, products: Bools) -> Bools:
    """Copies without a cast inside the outermost ops of the products."""
    ops, strings, launches = context.profile.ops, context.profile.strings, context.profile.launches
    top = take_or(context.view.call_top, launches.call, -1)
    row = context.view.launch_op
    copies = np.zeros(len(ops) + 1, dtype=np.bool_)
    for op in np.unique(row[np.isin(top, np.unique(top[products])) & (top >= 0) & (row >= 0)]).tolist():
        types = context.profile.dtypes_of(op)
        copies[op] = strings[ops.name[op]] == COPY and types[0] == types[1]
    around: Bools = np.isin(top, np.unique(top[products])) & (top >= 0) & copies[row]
    return around


def _matrices(shapes: InputShapes) -> list[Shape]:
    """The inputs with three dimensions or more, each as a batch of matrices."""
    return [(math.prod(shape[:-2]), *shape[-2:]) for shape in tensors_of(shapes) if len(shape) >= _LEAST_DIMENSIONS]


def _same(matrices: Shape, size: Shape) -> bool:
    return matrices[0] == size[0] and sorted(matrices[1:]) == sorted(size[1:])


def _inside_math(context: RuleContext, op: int) -> bool:
    calls, parent = context.profile.calls, context.view.call_parent
    ops, strings = context.profile.ops, context.profile.strings
    row = int(np.flatnonzero(calls.op == op)[0])
    while row >= 0:
        if strings[ops.name[calls.op[row]]] == MATH:
            return True
        row = int(parent[row])
    return False
