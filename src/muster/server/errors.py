"""Errors of the server, and the HTTP status that fits each."""

from muster.model.errors import BadInput, IllegalTransition, MusterError


class NotFound(MusterError):
    """There is no such thing."""


class Forbidden(MusterError):
    """This person may not do that."""


class NotIdentified(MusterError):
    """A token is missing, unknown or too old."""


class WrongMethod(MusterError):
    """The path is right, the method is not."""


class TooMuch(MusterError):
    """More was sent than is read."""


class StoreTrouble(MusterError):
    """What can't be written down is not accepted."""


_STATUSES: dict[type[MusterError], int] = {
    BadInput: 400,
    NotIdentified: 401,
    Forbidden: 403,
    NotFound: 404,
    WrongMethod: 405,
    IllegalTransition: 409,
    TooMuch: 413,
    StoreTrouble: 507,
}


def status_of(error: MusterError) -> int:
    """The nearest class that has one; 500 if there is none."""
    return next((_STATUSES[kind] for kind in type(error).__mro__ if kind in _STATUSES), 500)
