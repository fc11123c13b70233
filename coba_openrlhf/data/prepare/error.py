"""How a preparation is refused."""


class PrepareError(ValueError):
    """A data set that cannot be prepared; the message says what to do."""
