"""A reference answer with its data source, on the way to the engines."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SourcedLabel:
    """OpenRLHF's engines take a label per prompt and no data source; both travel in its place.

    Attributes:
        label: The reference answer.
        datasource: What chooses the verifier.
    """

    label: object
    datasource: str
