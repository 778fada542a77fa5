"""Ways to reach people: each takes an envelope or says in a sentence why not, without any secret in it."""

from muster.server.config_post import Channel
from muster.server.stewardship.channels.base import Envelope, NotTaken, Sender
from muster.server.stewardship.channels.command import Command
from muster.server.stewardship.channels.courier import Courier, Done, Write
from muster.server.stewardship.channels.mail import Mail
from muster.server.stewardship.channels.webhook import Webhook

__all__ = ["Courier", "Done", "Envelope", "NotTaken", "Sender", "Write", "sender"]

_KINDS: dict[str, type[Webhook] | type[Mail] | type[Command]] = {
    "webhook": Webhook,
    "slack": Webhook,
    "email": Mail,
    "command": Command,
}


def sender(written: Channel) -> Sender:
    """What the configuration describes."""
    return _KINDS[written.kind](written)
