"""Data sets of reasoning-gym, scored by their own verifiers."""

import importlib.util
import json
import re

from coba_openrlhf.rewards.outcome import Outcome, excerpt

from .base import Limits, Verifier
from .boxed import last_boxed

_TAGGED = re.compile(r"<answer>(.*?)</answer>", re.DOTALL)


class ReasoningGymVerifier(Verifier):
    """The score that the data set which made a problem gives to the answer, in [0, 1].

    The reference answer is the whole entry that reasoning-gym made, as an object or JSON text; its ``metadata`` names
    the data set (``source_dataset``). The answer is the last ``<answer>...</answer>``, else the last ``\\boxed{}``,
    else the last line of the response.
    """

    def verify(self, response: str, label: object, limits: Limits) -> Outcome:
        """See ``Verifier``."""
        import reasoning_gym

        entry = read_entry(label)
        answer = find_answer(response)
        score_answer = reasoning_gym.get_score_answer_fn(entry["metadata"]["source_dataset"])
        score = float(score_answer(answer, entry))
        return Outcome(min(max(score, 0.0), 1.0), f"the answer is {excerpt(answer)}")

    def check_label(self, label: object) -> None:
        """See ``Verifier``."""
        read_entry(label)

    def load(self) -> None:
        """See ``Verifier``; its data sets take seconds."""
        import reasoning_gym  # noqa: F401

    def require_installed(self) -> None:
        """See ``Verifier``."""
        if importlib.util.find_spec("reasoning_gym") is None:
            raise ImportError("verifier reasoning_gym needs reasoning-gym: pip install 'coba_openrlhf[reasoning-gym]'")


def find_answer(response: str) -> str:
    """The answer in a response, empty if it is empty."""
    tagged = _TAGGED.findall(response)
    if tagged:
        return tagged[-1].strip()
    boxed = last_boxed(response)
    return boxed.strip() if boxed is not None else response.strip().rpartition("\n")[2].strip()


def read_entry(label: object) -> dict:
    """The entry of a data set.

    Raises:
        ValueError: It is none.
    """
    if isinstance(label, str):
        try:
            label = json.loads(label)
        except ValueError as error:
            raise ValueError(
                f"the reference answer must be an entry of reasoning-gym as JSON, got {label!r:.100}"
            ) from error
    if not isinstance(label, dict):
        raise ValueError(f"the reference answer must be an entry of reasoning-gym, got {type(label).__name__}")
    metadata = label.get("metadata")
    if isinstance(metadata, str):  # tables keep objects of many shapes as text
        metadata = json.loads(metadata)
    if "answer" not in label or not isinstance(metadata, dict) or not metadata.get("source_dataset"):
        raise ValueError(
            "the reference answer must be an entry of reasoning-gym with 'answer' and 'metadata' with "
            f"'source_dataset', got {', '.join(map(str, label))}"
        )
    return {**label, "metadata": metadata}
