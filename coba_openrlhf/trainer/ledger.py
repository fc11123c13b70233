"""What a run has spent so far."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from .rollout_batch import RolloutBatch


@dataclass
class Ledger:
    """Cumulative counts and seconds, over restarts too.

    Attributes:
        rollouts: Responses generated for training.
        generated_tokens: Their tokens.
        trained_tokens: Those of them in groups with differing scores; the others have advantage 0.
        eval_rollouts: Responses generated for evaluation.
        seconds: Wall time per phase.
    """

    rollouts: int = 0
    generated_tokens: int = 0
    trained_tokens: int = 0
    eval_rollouts: int = 0
    seconds: dict[str, float] = field(default_factory=dict)

    def add_step(self, rollouts: RolloutBatch, seconds: Mapping[str, float]) -> None:
        """Count one training step."""
        self.rollouts += len(rollouts)
        self.generated_tokens += int(rollouts.response_length_R.sum())
        self.trained_tokens += int(rollouts.response_length_R[rollouts.mixed_R].sum())
        for name, spent in seconds.items():
            self.charge(name, spent)

    def charge(self, name: str, seconds: float) -> None:
        """Add ``seconds`` to phase ``name``."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds

    def metrics(self) -> dict[str, float]:
        """``ledger/*``."""
        counts = {f"ledger/{k}": float(v) for k, v in asdict(self).items() if k != "seconds"}
        return counts | {f"ledger/seconds_{k}": v for k, v in self.seconds.items()}

    def state_dict(self) -> dict[str, object]:
        """JSON-able state."""
        return asdict(self)

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Continue from ``state_dict``."""
        for name, value in state.items():
            setattr(self, name, dict(value) if name == "seconds" else value)  # type: ignore[call-overload]
