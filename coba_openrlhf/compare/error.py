"""How a comparison is refused."""


class CompareError(ValueError):
    """Folders that cannot be compared; the message says why in one line."""
