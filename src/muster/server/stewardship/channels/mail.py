"""E-mail, by SMTP: with TLS unless the configuration says that there is none, and a login if there is one."""

import smtplib
import ssl
from email.message import EmailMessage
from email.utils import formatdate, make_msgid

from muster.server.config_post import Channel
from muster.server.stewardship.channels.base import Envelope, NotTaken, at_most, secret_in, why

_PORTS = {"starttls": 587, "tls": 465, "none": 25}
_LONGEST_SUBJECT = 120
_FOR_GOOD = 500  # from this code on a server means it


class Mail:
    """A server that takes e-mail."""

    def __init__(self, written: Channel) -> None:
        self._written = written

    def send(self, envelope: Envelope) -> None:
        if envelope.address is None:
            raise NotTaken(f"{envelope.to} has no e-mail address", for_good=True)
        mail = written_to(envelope, self._written.sender or "")
        try:
            self._handed_over(mail)
        except smtplib.SMTPRecipientsRefused as refused:
            codes = [code for code, _ in refused.recipients.values()]
            for_good = all(code >= _FOR_GOOD for code in codes)
            raise NotTaken(f"the address of {envelope.to} is refused", for_good=for_good) from None
        except smtplib.SMTPAuthenticationError:
            raise NotTaken("it does not accept the user and password") from None
        except smtplib.SMTPResponseException as error:
            raise NotTaken(f"it answers with {error.smtp_code}") from None
        except smtplib.SMTPException as error:
            said = "it offers no TLS or login" if isinstance(error, smtplib.SMTPNotSupportedError) else None
            raise NotTaken(said or "it breaks off") from None
        except ssl.SSLError:
            raise NotTaken("its certificate is not trusted here; ca_file names one that is") from None
        except OSError as error:
            raise NotTaken(why(error)) from None

    def _handed_over(self, mail: EmailMessage) -> None:
        written = self._written
        turns = 4  # that a conversation has, about
        with self._opened() as server, at_most(turns * written.timeout_seconds, lambda: server.sock):
            if written.tls == "starttls":
                server.starttls(context=self._trust())
            if written.user is not None:
                password = written.password or secret_in(written.password_file or "", "password_file")
                server.login(written.user, password)
            server.send_message(mail)

    def _opened(self) -> smtplib.SMTP:
        written = self._written
        host, port = written.host or "", written.port or _PORTS[written.tls]
        if written.tls == "tls":
            return smtplib.SMTP_SSL(host, port, timeout=written.timeout_seconds, context=self._trust())
        return smtplib.SMTP(host, port, timeout=written.timeout_seconds)

    def _trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self._written.ca_file)


def written_to(envelope: Envelope, sender: str) -> EmailMessage:
    """The mail. What comes from people is in one line by now, so no header can be smuggled in."""
    mail = EmailMessage()
    mail["From"], mail["To"] = sender, envelope.address
    subject = f"Muster: {envelope.headline}"
    short = subject if len(subject) <= _LONGEST_SUBJECT else subject[: _LONGEST_SUBJECT - 1] + "…"
    mail["Subject"] = short
    mail["Date"], mail["Message-ID"] = formatdate(), make_msgid(domain="muster.invalid")
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(envelope.text + "\n")
    return mail
