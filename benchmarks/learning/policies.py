"""Small causal transformers, one per seed, trained side by side.

A step of one small model costs mostly the calls around its arithmetic. Here every weight has a leading seed axis, and
a layer of all models is one batched product: seeds cost little more than their arithmetic, and share nothing.
"""

# Legend: S = seeds, N = sequences per seed, T = tokens of a sequence, D = width, H = heads, V = vocabulary,
#         L = layers, P = prompts per seed, A = tokens of an answer.

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

Cache = list[tuple[torch.Tensor, torch.Tensor]]


@dataclass(frozen=True)
class Shape:
    """Size of one model.

    Attributes:
        vocabulary: Tokens.
        length: Longest sequence, prompt and answer together.
        width: Of the residual stream.
        layers: Blocks of attention and a two-layer perceptron of four times the width.
        heads: Attention heads.
    """

    vocabulary: int
    length: int
    width: int = 32
    layers: int = 2
    heads: int = 2


class Policies:
    """``S`` independent transformers: pre-norm, learned positions, no biases, tied to nothing.

    Args:
        shape: Size of each.
        seeds: One per model; a seed gives the same initial weights in whatever company.
    """

    def __init__(self, shape: Shape, seeds: list[int]) -> None:
        self.shape = shape
        self.seeds = list(seeds)
        width = shape.width
        sizes = {"tokens": (shape.vocabulary, width), "positions": (shape.length, width)}
        for layer in range(shape.layers):
            sizes |= {
                f"{layer}.attention_in": (width, 3 * width),
                f"{layer}.attention_out": (width, width),
                f"{layer}.mlp_in": (width, 4 * width),
                f"{layer}.mlp_out": (4 * width, width),
            }
        sizes["logits"] = (width, shape.vocabulary)
        generators = [np.random.default_rng([7, seed]) for seed in self.seeds]
        self.weights: dict[str, torch.Tensor] = {}
        for name, size in sizes.items():
            scale = 0.02 if name in ("tokens", "positions") else 1 / math.sqrt(size[0])
            if name.endswith("_out"):
                scale /= math.sqrt(2 * shape.layers)
            values = np.stack([generator.normal(0, scale, size) for generator in generators])
            self.weights[name] = torch.tensor(values, dtype=torch.float32, requires_grad=True)

    def copy_weights(self) -> dict[str, torch.Tensor]:
        """Detached copies, for checkpoints."""
        return {name: weight.detach().clone() for name, weight in self.weights.items()}

    def load_weights(self, weights: dict[str, torch.Tensor]) -> None:
        """Take over weights of the same seeds."""
        for name, weight in self.weights.items():
            with torch.no_grad():
                weight.copy_(weights[name])

    def logits(self, token_SNT: torch.Tensor, cache: Cache | None = None) -> torch.Tensor:
        """Next-token logits ``[S, N, T, V]`` of whole sequences, or of what comes after ``cache``.

        Args:
            token_SNT: int64.
            cache: Keys and values so far, per layer ``[S, N, H, T, D / H]`` each; extended in place. An empty list
                starts one.
        """
        shape = self.shape
        num_seeds, num_rows, num_new = token_SNT.shape
        past = cache[0][0].shape[3] if cache else 0
        flat = token_SNT.reshape(num_seeds, -1, 1).expand(-1, -1, shape.width)
        x_SRD = self.weights["tokens"].gather(1, flat)
        position_STD = self.weights["positions"][:, past : past + num_new]
        x_SRD = (x_SRD.view(num_seeds, num_rows, num_new, -1) + position_STD[:, None]).flatten(1, 2)
        for layer in range(shape.layers):
            packed = torch.bmm(_normalise(x_SRD), self.weights[f"{layer}.attention_in"])
            packed = packed.view(num_seeds, num_rows, num_new, 3, shape.heads, -1)
            query, key, value = packed.permute(3, 0, 1, 4, 2, 5).unbind(0)
            if cache is not None:
                if len(cache) > layer:
                    key = torch.cat((cache[layer][0], key), 3)
                    value = torch.cat((cache[layer][1], value), 3)
                    cache[layer] = (key, value)
                else:
                    cache.append((key, value))
            mixed = functional.scaled_dot_product_attention(
                query.flatten(0, 1), key.flatten(0, 1), value.flatten(0, 1), is_causal=num_new > 1
            )
            mixed = mixed.transpose(1, 2).reshape(num_seeds, -1, shape.width)
            x_SRD = x_SRD + torch.bmm(mixed, self.weights[f"{layer}.attention_out"])
            hidden = functional.relu(torch.bmm(_normalise(x_SRD), self.weights[f"{layer}.mlp_in"]))
            x_SRD = x_SRD + torch.bmm(hidden, self.weights[f"{layer}.mlp_out"])
        return torch.bmm(_normalise(x_SRD), self.weights["logits"]).view(num_seeds, num_rows, num_new, -1)

    def answer_logprobs(self, prompt_SNT: torch.Tensor, answer_SNA: torch.Tensor) -> torch.Tensor:
        """Log-probability of every answer token, ``[S, N, A]``, given its prompt and the tokens before it."""
        tokens = torch.cat((prompt_SNT, answer_SNA), 2)[:, :, :-1]
        logits = self.logits(tokens)[:, :, prompt_SNT.shape[2] - 1 :]
        return -functional.cross_entropy(
            logits.flatten(0, 2), answer_SNA.flatten(), reduction="none"
        ).view(answer_SNA.shape)  # fmt: skip

    @torch.no_grad()
    def sample(
        self, prompt_SPT: torch.Tensor, prompt_SN: torch.Tensor, uniform_SNA: torch.Tensor, end: int
    ) -> torch.Tensor:
        """Draw answers at temperature 1.

        Args:
            prompt_SPT: Prompts of the step.
            prompt_SN: Which of them each rollout answers.
            uniform_SNA: Draws in [0, 1), one per token: the only randomness.
            end: The token that ends an answer; what follows it is ``end`` as well.

        Returns:
            ``[S, N, A]``, int64.
        """
        cache: Cache = []
        logits_SPV = self.logits(prompt_SPT, cache)[:, :, -1]
        seed_SN = torch.arange(len(prompt_SN))[:, None].expand_as(prompt_SN)
        cache = [(key[seed_SN, prompt_SN], value[seed_SN, prompt_SN]) for key, value in cache]
        logits_SNV = logits_SPV[seed_SN, prompt_SN]
        tokens: list[torch.Tensor] = []
        ended_SN = torch.zeros_like(prompt_SN, dtype=torch.bool)
        for index in range(uniform_SNA.shape[2]):
            if index:
                logits_SNV = self.logits(tokens[-1][:, :, None], cache)[:, :, 0]
            total_SNV = logits_SNV.softmax(-1).cumsum(-1)
            # The last sum is 1 up to rounding: scaling keeps every draw below it.
            draw_SN1 = uniform_SNA[:, :, index, None] * total_SNV[:, :, -1:]
            token_SN = (total_SNV <= draw_SN1).sum(-1).clamp_(max=self.shape.vocabulary - 1)
            token_SN = token_SN.masked_fill(ended_SN, end)
            ended_SN = ended_SN | (token_SN == end)
            tokens.append(token_SN)
        return torch.stack(tokens, 2)


def _normalise(x: torch.Tensor) -> torch.Tensor:
    return functional.rms_norm(x, x.shape[-1:])


def uniforms(generators: list[np.random.Generator], *size: int) -> torch.Tensor:
    """Draws in [0, 1), float32 ``[S, *size]``, row ``s`` from generator ``s`` alone."""
    draws: NDArray[np.float32] = np.stack([generator.random(size, np.float32) for generator in generators])
    return torch.from_numpy(draws)
