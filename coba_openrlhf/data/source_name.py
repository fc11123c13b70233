"""Names of data sources."""


def source_name(cell: object, default: str = "default") -> str:
    """The data source that a cell of the column ``datasource`` names; ``default`` where it is empty."""
    return default if cell is None or cell == "" else str(cell)
