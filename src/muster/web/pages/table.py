"""All pages, in the order of the menu."""

from muster.web.desk import Desk
from muster.web.pages.effort import EffortPage, EffortsPage
from muster.web.pages.find import Find
from muster.web.pages.home import Home
from muster.web.pages.job import JobPage
from muster.web.pages.queue import Queue
from muster.web.pages.review import Review
from muster.web.pages.reviews import Reviews
from muster.web.pages.stack import StackPage
from muster.web.pages.time import Time
from muster.web.pages.use import Use
from muster.web.pages.where import Where
from muster.web.pages.why import WhyPage
from muster.web.sheet import Page


def pages_of(desk: Desk) -> tuple[Page, ...]:
    return (
        Page("/", Home(desk), "Mine", "m"),
        Page("/where", Where(desk), "Where", "w"),
        Page("/stack", StackPage(desk), "Stack", "s"),
        Page("/use", Use(desk), "Use", "u"),
        Page("/queue", Queue(desk), "Queue", "q"),
        Page("/queue/why/{id}", WhyPage(desk)),
        Page("/time", Time(desk), "Time", "t"),
        Page("/review", Review(desk), "Review", "r"),
        Page("/reviews", Reviews(desk)),
        Page("/efforts", EffortsPage(desk), "Efforts", "e"),
        Page("/effort/{name}", EffortPage(desk)),
        Page("/job/{id}", JobPage(desk)),
        Page("/find", Find(desk)),
    )
