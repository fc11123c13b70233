"""How a replay is refused."""


class ReplayError(ValueError):
    """A run or a rule that cannot be replayed; the message says why in one line."""
