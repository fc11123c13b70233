"""What the trainer tells the driver."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Report:
    """What the driver shows: an evaluation (``kind`` = ``"eval"``), a step (``"step"``) or a remark (``"note"``)."""

    kind: str
    step: int
    num_steps: int
    metrics: dict[str, float]
    text: str = ""
