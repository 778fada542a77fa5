"""Minutes as values: what people wrote in them stays what it is."""

from hypothesis import given
from hypothesis import strategies as st

from muster.steward.review.minutes import _text
from muster.web.minutes import Block, Text, blocks_of, line_of

MINUTES = """# Review 3, Thu 17:00

Closed by cleo.
About little.

- defended: 1 item
- habit: 0 items

| what | owner |
|---|--:|
| 5 a\\|b | ana |

## Stopped

- **9 \\*old\\*** of dan
    - `muster revive 9`
"""


def test_minutes_are_headings_lists_tables_and_paragraphs() -> None:
    kinds = [(block.kind, block.level) for block in blocks_of(MINUTES)]
    assert kinds == [
        ("heading", 1),
        ("text", 1),
        ("list", 1),
        ("table", 1),
        ("heading", 2),
        ("list", 1),
        ("list", 2),
    ]


def test_a_backslash_takes_the_meaning_from_a_sign() -> None:
    table, stopped = blocks_of(MINUTES)[3], blocks_of(MINUTES)[5]
    assert table.rows == (((Text("what"),), (Text("owner"),)), ((Text("5 a|b"),), (Text("ana"),)))
    assert stopped.lines == ((Text("9 *old*", "bold"), Text(" of dan")),)


def test_markup_is_only_text() -> None:
    assert blocks_of("<script>x</script>") == [Block("text", lines=((Text("<script>x</script>"),),))]
    assert line_of("a [link](x) <b>") == (Text("a [link](x) <b>"),)


@given(st.text(max_size=60))
def test_what_people_said_is_read_as_it_was_written(said: str) -> None:
    written = _text(said)
    shown = " ".join("".join(one.text for one in line_of(written)).split())
    plain = " ".join("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in said).split())
    assert shown == " ".join(plain.split()) or not said.isprintable()


@given(st.text(max_size=200))
def test_no_text_breaks_the_reader(text: str) -> None:
    blocks_of(text)
