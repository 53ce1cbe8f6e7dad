"""Errors of more than one room."""


class SettingsError(ValueError):
    """A setting makes no sense; the message says which, and what would."""
