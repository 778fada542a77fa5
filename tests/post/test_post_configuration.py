"""What muster.toml says of messages, and when on the wall it is time for them."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from muster.model.units import HOUR
from muster.server.config import BadConfig, changes, parse_config
from muster.server.config_post import Attention
from muster.server.stewardship.hours import moments, since_words

SLACK = '[channel.team-slack]\nkind = "slack"\nurl = "https://hooks.example.org/s3cret"\n'
MAIL = '[channel.mail]\nkind = "email"\nhost = "mx.example.org"\nfrom = "muster@example.org"\n'


def trouble(text: str) -> tuple[int | None, str]:
    with pytest.raises(BadConfig) as refused:
        parse_config(text, "muster.toml")
    assert "s3cret" not in str(refused.value)
    return refused.value.line, refused.value.said


def test_channels_are_everybodys_unless_somebody_says_otherwise() -> None:
    config = parse_config(
        f'[attention]\nchannels = ["team-slack", "mail"]\n{SLACK}{MAIL}'
        '[user.ana]\nemail = "ana@example.org"\n[user.ben]\nchannels = ["team-slack"]\n',
        "muster.toml",
    )
    assert config.channels_of("ana") == ("team-slack", "mail")
    assert config.channels_of("ben") == ("team-slack",)
    assert config.channels_of("cia") == ("team-slack",)  # where should a mail go?


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('[attention]\ndigest = "25:00"', 2, "attention.digest: '25:00' is not a time of day"),
        ('[attention]\nquiet = "22:00"', 2, "attention.quiet: '22:00' is not a part of the day"),
        ('[attention]\ntimezone = "Mars/Base"', 2, "is no time zone that is known here"),
        ('[attention]\ntimezone = "../../etc/passwd"', 2, "is no time zone that is known here"),
        ('[attention]\nchannels = ["slak"]\n' + SLACK, 2, "there is no channel 'slak'; did you mean"),
        ('[user.ana]\nchannels = ["mail"]\n' + MAIL, 2, "'mail' writes e-mails, and 'ana' has no address"),
        ('[user.ana]\nemail = "ana\\nBcc: eve"', 2, "is not an e-mail address"),
        ('[channel.x]\nurl = "https://s3cret"', 1, "say what kind it is: webhook, slack, email or command"),
        ('[channel.x]\nkind = "webhook"', 1, "a channel of kind 'webhook' needs url or url_file"),
        ('[channel.x]\nkind = "slack"\nurl = "ftp://s3cret"', 3, "this is not a webhook's address"),
        ('[channel.x]\nkind = "slack"\nurl = "http://h:99999/s3cret"', 3, "this is not a webhook's address"),
        (SLACK + 'host = "x"', 4, "a channel of kind 'slack' has no such setting"),
        (SLACK + 'url_file = "/x"', 4, "url says that already; leave one of them out"),
        (MAIL + 'user = "u"', 1, "user and password go together; say both or none"),
        (MAIL + 'user = "u"\npassword = "s3cret"\ntls = "none"', 7, "for all to read"),
        ('[channel.x]\nkind = "command"\ncommand = ["tell"]', 3, "begins with the full path of a program"),
        ('[channel.x]\nkind = "command"\ncommand = "/bin/tell"', 3, "a command is a list of words"),
        ('[channel.terminal]\nkind = "command"\ncommand = ["/bin/tell"]', 1, "choose another name"),
        (SLACK + 'timeout = "1h"', 4, "a channel is waited for between a second and five minutes"),
    ],
)
def test_what_cant_be_right_is_refused_on_its_line(text: str, line: int, said: str) -> None:
    found = trouble(text)
    assert found[0] == line
    assert said in found[1]


def test_a_change_is_told_without_what_it_says() -> None:
    old, new = parse_config(SLACK, "x"), parse_config(SLACK.replace("s3cret", "other"), "x")
    assert changes(old, new).sentences == ("what is said of channel 'team-slack' has changed",)
    later = parse_config('[attention]\ndigest = "10:00"', "x")
    assert changes(parse_config("", "x"), later).sentences == ("attention.digest has changed",)


# --- The day on the wall ------------------------------------------------------------------------------

BERLIN = Attention(digest=(9, 0), quiet=((22, 0), (7, 0)), timezone="Europe/Berlin")


def berlin(month: int, day: int, hour: int, minute: int = 0) -> float:
    return datetime(2026, month, day, hour, minute, tzinfo=ZoneInfo("Europe/Berlin")).timestamp()


def test_the_moment_of_the_digest_is_the_last_that_has_come() -> None:
    assert moments(BERLIN, berlin(11, 16, 9), 0.0).digest_at == berlin(11, 16, 9)
    assert moments(BERLIN, berlin(11, 16, 8, 59), 0.0).digest_at == berlin(11, 15, 9)


def test_a_day_with_another_length_has_its_digest_at_the_same_hour() -> None:
    assert moments(BERLIN, berlin(10, 25, 8), 0.0).digest_at == berlin(10, 24, 9)
    assert berlin(10, 25, 9) - berlin(10, 24, 9) == 25 * HOUR
    assert moments(BERLIN, berlin(3, 29, 9), 0.0).digest_at == berlin(3, 29, 9)


def test_a_wall_that_is_ahead_is_reckoned_in_our_time() -> None:
    assert moments(BERLIN, berlin(11, 16, 10), 1000.0).digest_at == berlin(11, 16, 9) - 1000.0


@pytest.mark.parametrize(("hour", "quiet"), [(21, False), (22, True), (3, True), (7, False)])
def test_the_night_is_quiet(hour: int, quiet: bool) -> None:
    assert moments(BERLIN, berlin(11, 16, hour), 0.0).quiet is quiet


def test_how_long_ago_is_said_as_people_say_it() -> None:
    now = berlin(11, 16, 10)
    assert since_words(BERLIN, berlin(11, 16, 8, 5), now) == "08:05"
    assert since_words(BERLIN, berlin(11, 15, 23), now) == "yesterday"
    assert since_words(BERLIN, berlin(11, 12, 23), now) == "12 November"
