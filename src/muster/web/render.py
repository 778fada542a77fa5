"""Sheets become HTML. Everything that stands in a template is escaped, unless it was made by us as markup."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jinja2
from markupsafe import Markup

from muster.web import words
from muster.web.assets import Assets
from muster.web.door import form_word
from muster.web.sheet import Page, Sheet, Visit


class Renderer:
    """The templates, compiled as they are needed and kept."""

    def __init__(self, assets: Assets, pages: Sequence[Page], wall: Callable[[], float]) -> None:
        self._wall = wall
        self._templates = jinja2.Environment(
            loader=jinja2.PackageLoader("muster.web"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._templates.filters.update(words.FILTERS)
        self._templates.filters["clock"] = lambda at: words.clock(at, wall())
        self._templates.filters["ago"] = lambda at: words.ago(at, wall())
        self._templates.globals.update(
            asset=assets.url, pages=[page for page in pages if page.name], markup=Markup
        )

    def page(self, sheet: Sheet, visit: Visit, about: Mapping[str, Any]) -> bytes:
        """``about``: what every page says of the server."""
        return self._render(
            sheet.template,
            sheet=sheet,
            data=sheet.data,
            visit=visit,
            person=visit.person,
            word=form_word(visit.session),
            now=self._wall(),
            **{**about, **sheet.more},  # a page that was drawn from a tick says from which
        )

    def plain(self, template: str, **more: Any) -> bytes:
        """A page that needs nobody to be known: signing in, and what went wrong before."""
        return self._render(template, now=self._wall(), **more)

    def _render(self, template: str, **context: Any) -> bytes:
        return self._templates.get_template(template).render(context).encode("utf-8", "replace")
