"""Errors of more than one room."""


class SettingsError(ValueError):
    """A setting makes no sense; the message says which, and what would."""


class CheckpointError(Exception):
    """A model folder cannot be used; the message names the file and the way out."""


class DataError(Exception):
    """A data folder cannot be used; the message names the file and the way out."""


class FailedError(Exception):
    """A model or an engine gave no usable number where it had to."""


class StoppedError(Exception):
    """A row of a table was stopped before its end; the message says how to go on."""
