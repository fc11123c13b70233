"""How a configuration is refused."""


class ConfigError(ValueError):
    """A configuration that cannot run; the message names the key, the rule and the value."""


def require(condition: bool, message: str) -> None:
    """Raise ConfigError with ``message`` unless ``condition`` holds."""
    if not condition:
        raise ConfigError(message)
