"""Carrying out questions to the store."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, Select
from sqlalchemy.exc import SQLAlchemyError

from muster.store.database import StoreError, sentence_of

Ask = Callable[[Select[Any]], Sequence[Any]]


class Lookup:
    """A way to read, from any thread."""

    def __init__(self, engine: Engine) -> None:
        self._reader = engine

    def _rows(self, query: Select[Any]) -> Sequence[Any]:
        with self._told(), self._reader.connect() as connection:
            return connection.execute(query).all()

    @contextmanager
    def _at_once(self) -> Iterator[Ask]:
        """For several questions that have to be answered from one state, whatever is written meanwhile."""
        is_sqlite = self._reader.dialect.name == "sqlite"
        begin = "BEGIN" if is_sqlite else "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        with self._told(), self._reader.connect() as connection:
            connection.exec_driver_sql(begin)  # by hand, as reading is without transactions otherwise
            try:
                yield lambda query: connection.execute(query).all()
            finally:
                connection.exec_driver_sql("ROLLBACK")

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise StoreError(f"the store can't be read: {sentence_of(error)}") from error
