"""Returns what ``torch.autocast`` does with an op on a CUDA device.

Source: PyTorch documentation, *Automatic Mixed Precision package - torch.amp*, "CUDA Ops that can autocast to float16",
"... to float32" and "... that promote to the widest input type", and the op registry of
``aten/src/ATen/autocast_mode.h``. Names are those of the ops without "aten::".
"""

from __future__ import annotations

from typing import Literal

Rule = Literal["half", "fp32", "follow"]

HALF = frozenset({
    "_convolution", "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "convolution", "cudnn_convolution", "cudnn_convolution_transpose", "prelu", "addmm", "addmv",
    "addr", "matmul", "einsum", "mm", "mv", "linalg_vecdot", "linear", "addbmm", "baddbmm", "bmm", "chain_matmul",
    "linalg_multi_dot", "_thnn_fused_lstm_cell", "_thnn_fused_gru_cell", "lstm_cell", "gru_cell", "rnn_tanh_cell",
    "rnn_relu_cell", "lstm", "gru", "rnn_tanh", "rnn_relu", "_cudnn_rnn", "_scaled_dot_product_flash_attention",
    "scaled_dot_product_attention",
})  # fmt: skip
FP32 = frozenset({
    "acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p", "reciprocal", "rsqrt", "sinh",
    "tan", "pow", "softplus", "layer_norm", "native_layer_norm", "group_norm", "native_group_norm",
    "frobenius_norm", "nuclear_norm", "cosine_similarity", "poisson_nll_loss", "cosine_embedding_loss", "nll_loss",
    "nll_loss2d", "hinge_embedding_loss", "kl_div", "l1_loss", "smooth_l1_loss", "huber_loss", "mse_loss",
    "margin_ranking_loss", "multilabel_margin_loss", "soft_margin_loss", "triplet_margin_loss",
    "multi_margin_loss", "binary_cross_entropy_with_logits", "dist", "pdist", "cdist", "renorm", "logsumexp",
    "prod", "softmax", "log_softmax", "_softmax", "_log_softmax", "cumprod", "cumsum", "sum", "norm",
    "linalg_vector_norm", "linalg_matrix_norm", "cross_entropy_loss", "upsample_nearest1d", "upsample_nearest2d",
    "upsample_nearest3d", "upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d",
    "rms_norm", "_fused_rms_norm",
})  # fmt: skip


def rule_of(op: str) -> Rule:
    """What autocast does with the op: computes in half precision, in FP32, or follows its inputs' types."""
    name = op.removeprefix("aten::")
    if name in HALF:
        return "half"
    return "fp32" if name in FP32 else "follow"
