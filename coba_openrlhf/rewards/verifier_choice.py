"""Which built-in verifier checks which row of the data, refused where it cannot."""

from collections.abc import Iterable, Mapping

from .verifiers import VERIFIERS


def verifier_for(datasource: str, verifier: str, verifier_of: Mapping[str, str]) -> str:
    """The verifier of a data source: its own, or ``verifier``."""
    return verifier_of.get(datasource, verifier)


def require_known_sources(verifier_of: Mapping[str, str], sources: Iterable[str]) -> None:
    """Refuse a choice for a data source that no row has: it is a mistyped name.

    Raises:
        ValueError: With the data sources that there are.
    """
    known = sorted(set(sources))
    for source in verifier_of:
        if source not in known:
            raise ValueError(
                f"coba.verifier_of: no row has datasource {source!r}; the data have {', '.join(map(repr, known))}"
            )


def check_label(verifier: str, label: object) -> None:
    """Refuse a reference answer that no response could match.

    Raises:
        ValueError: With the rule and the value.
    """
    VERIFIERS[verifier].check_label(label)
