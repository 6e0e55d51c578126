"""Chooses how much each feature of an op counts: the hyperparameters of the forecast's Gaussian processes.

By the likelihood of the measured ops (Rasmussen and Williams, equation 5.8), with weak priors that keep a kind with
few measured ops from extremes. No recording of a model takes part.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray

from tb_dlprof_plugin.planning.op_times import GaussianProcess

MOST_OPS = 700
"""Of a kind with more, a sample tells the hyperparameters as well."""
_STEPS = 150
_RATE = 0.08
_JITTER = 1e-5
_LENGTH, _LENGTH_PRIOR = math.log(3.0), 0.2
_AMPLITUDE, _NOISE, _TREND = math.log(0.2), math.log(0.02), math.log(0.1)


def fitted(features: NDArray[np.float64], logarithms: NDArray[np.float64]) -> GaussianProcess:
    """The process under which these ops (rows of features, logarithm of the ratio) are most likely."""
    if len(features) > MOST_OPS:
        sample = np.random.default_rng(0).permutation(len(features))[:MOST_OPS]
        features, logarithms = features[sample], logarithms[sample]
    # A feature that is the same in all measured ops carries no information: in its own unit it stays in place.
    scale = np.where(features.std(axis=0) > 1e-6, features.std(axis=0), 1.0)
    x = torch.from_numpy((features - features.mean(axis=0)) / scale)
    y = torch.from_numpy(logarithms - logarithms.mean())
    count, width = x.shape
    start = [_LENGTH] * width + [_AMPLITUDE, _TREND, _NOISE]
    parameters = torch.tensor(start, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([parameters], lr=_RATE)
    for _ in range(_STEPS):
        optimizer.zero_grad()
        amplitude, trend, noise = parameters[width:].exp()
        scaled = x / parameters[:width].exp()
        distance = math.sqrt(3.0) * torch.cdist(scaled, scaled)
        covariance = amplitude * (1 + distance) * torch.exp(-distance) + trend * (scaled @ scaled.T)
        root = torch.linalg.cholesky(covariance + (noise + _JITTER) * torch.eye(count, dtype=torch.float64))
        solved = torch.cholesky_solve(y[:, None], root)[:, 0]
        loss = 0.5 * y @ solved + root.diagonal().log().sum()
        prior = _LENGTH_PRIOR * ((parameters[:width] - _LENGTH) ** 2).sum()
        prior = prior + 0.05 * ((parameters[width:] - torch.tensor(start[width:])) ** 2).sum()
        (loss + prior).backward()
        optimizer.step()
    found = parameters.detach().exp().numpy()
    return GaussianProcess(
        tuple((found[:width] * scale).tolist()), float(found[width]), float(found[width + 1]), float(found[width + 2])
    )
