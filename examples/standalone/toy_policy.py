"""A policy small enough to read, and the prompts that it learns to answer. NumPy only.

A prompt is a vector; the right answer is a sequence of tokens that depends linearly on it. The policy is a softmax per
token position, so that pass rates are exact and a policy gradient is three lines. What it learns from one prompt it
can use for others, as a language model does.
"""

# Legend: P = prompts, R = rollouts, D = features of a prompt, T = tokens of a response, V = vocabulary.

import numpy as np

NUM_FEATURES, NUM_TOKENS, VOCABULARY = 24, 2, 8
TEACHER_TDV = np.random.default_rng(0).normal(size=(NUM_TOKENS, NUM_FEATURES, VOCABULARY))


def make_prompts(num_prompts, seed):
    """Features ``[P, D]`` and right answers ``[P, T]``."""
    # Some prompts lie close to the border between two answers: they are hard.
    feature_PD = np.random.default_rng(seed).normal(size=(num_prompts, NUM_FEATURES))
    return feature_PD, np.einsum("pd,tdv->ptv", feature_PD, TEACHER_TDV).argmax(axis=2)


class ToyPolicy:
    """Softmax of ``features @ weights`` at every token position; begins half wrong, as if badly pretrained.

    Args:
        learning_rate: Of plain gradient ascent.
    """

    def __init__(self, learning_rate=1.0):
        self.weight_TDV = 0.3 * (TEACHER_TDV + np.random.default_rng(1).normal(size=TEACHER_TDV.shape))
        self.learning_rate = learning_rate

    def probabilities(self, feature_ND):
        """Of every token, ``[N, T, V]``."""
        logit_NTV = np.einsum("nd,tdv->ntv", feature_ND, self.weight_TDV)
        odds_NTV = np.exp(logit_NTV - logit_NTV.max(axis=2, keepdims=True))
        return odds_NTV / odds_NTV.sum(axis=2, keepdims=True)

    def pass_rate(self, feature_PD, answer_PT):
        """Exact chance of a right response, ``[P]``."""
        right_PT = np.take_along_axis(self.probabilities(feature_PD), answer_PT[:, :, None], axis=2)[:, :, 0]
        return right_PT.prod(axis=1)

    def generate(self, feature_RD, rng):
        """One response per row, ``[R, T]``."""
        cumulative_RTV = self.probabilities(feature_RD).cumsum(axis=2)
        draw_RT1 = rng.random((len(feature_RD), NUM_TOKENS, 1))
        # The last sum may be rounded below the draw.
        return np.minimum((draw_RT1 > cumulative_RTV).sum(axis=2), VOCABULARY - 1)

    def update(self, feature_RD, response_RT, advantage_RT):
        """One step up the policy gradient; every token has the same weight."""
        score_RTV = np.eye(VOCABULARY)[response_RT] - self.probabilities(feature_RD)
        gradient_TDV = np.einsum("rt,rtv,rd->tdv", advantage_RT, score_RTV, feature_RD)
        self.weight_TDV += self.learning_rate * gradient_TDV / advantage_RT.size
