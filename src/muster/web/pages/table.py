"""All pages, in the order of the menu."""

from muster.web.desk import Desk
from muster.web.pages.effort import EffortPage, EffortsPage
from muster.web.pages.find import Find
from muster.web.pages.home import Home
from muster.web.pages.job import JobPage
from muster.web.sheet import Page


def pages_of(desk: Desk) -> tuple[Page, ...]:
    return (
        Page("/", Home(desk), "Mine", "m"),
        Page("/efforts", EffortsPage(desk), "Efforts", "e"),
        Page("/effort/{name}", EffortPage(desk)),
        Page("/job/{id}", JobPage(desk)),
        Page("/find", Find(desk)),
    )
