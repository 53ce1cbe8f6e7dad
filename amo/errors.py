"""Errors of more than one room."""


class SettingsError(ValueError):
    """A setting makes no sense; the message says which, and what would."""


class CheckpointError(Exception):
    """A model folder cannot be used; the message names the file and the way out."""
