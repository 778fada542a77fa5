"""The table ``[review]``, and who is asked about work that has lost its owner."""

import pytest

from muster.model.units import DAY, HOUR
from muster.server.config import BadConfig, changes, parse_config
from muster.server.people import answers_for

TEAMS = """
[team.lab]
leads = ["prof"]
[team.vision]
parent = "lab"
[team.alone]
[user.ada]
role = "admin"
"""


def test_reviews_are_on_by_default_and_can_be_said_otherwise() -> None:
    rules = parse_config("", "muster.toml").review
    assert (str(rules.schedule), rules.opens_seconds, rules.notice_seconds) == ("Thu 17:00", 3 * DAY, DAY)
    text = (
        '[review]\nschedule = "Mon,Thu 09:30"\nopens = "2d"\nnotice = "12h"\nrevive = "7d"\nsilent = "21d"\n'
    )
    rules = parse_config(text + 'longest = "30d"\ntimezone = "Europe/Berlin"\n', "muster.toml").review
    assert (str(rules.schedule), rules.notice_seconds, rules.longest_seconds) == (
        "Mon,Thu 09:30",
        12 * HOUR,
        30 * DAY,
    )
    assert parse_config('[review]\nschedule = "off"\n', "muster.toml").review.schedule is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('schedule = "Thu"', "is not a schedule"),
        ("schedule = 17", "is not a text"),
        ('timezone = "Mars/Olympus"', "is not a time zone"),
        ('timezone = "../../etc"', "is not a time zone"),
        ('notice = "4d"', "longer than the review is open"),
        ('opens = "0s"', "is not above 0"),
        ("notices = 3", "did you mean 'notice'"),
    ],
)
def test_what_can_not_be_is_refused_with_its_line(line: str, said: str) -> None:
    with pytest.raises(BadConfig, match=said) as refused:
        parse_config(f"[review]\n{line}\n", "muster.toml")
    assert refused.value.line == 2


def test_a_new_schedule_takes_effect_at_once() -> None:
    new = parse_config('[review]\nschedule = "off"\n', "muster.toml")
    found = changes(parse_config("", "muster.toml"), new)
    assert (found.sentences, found.restart) == (("review.schedule has changed",), ())


def test_work_without_an_owner_is_the_nearest_leads_or_the_admins() -> None:
    config = parse_config(TEAMS, "muster.toml")
    assert answers_for(config, "vision", "root") == ("prof",)
    assert answers_for(config, "alone", "root") == ("ada",)
    assert answers_for(config, "", "root") == ("ada",)
    assert answers_for(parse_config("", "muster.toml"), "", "root") == ("root",)
