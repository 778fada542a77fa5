"""Whether a purpose says something.

Nobody can judge by rule whether a reason is good, and this does not try. It only finds what can't be one: no
words, filler ("test test"), one word alone, what the job is called anyway. So it counts *words of meaning*,
and two different ones are enough, in any language. Scripts that write no blanks are counted by their letters:
two of Chinese, Japanese or Korean make about a word, four of Thai and its neighbours.
"""

import re
import unicodedata
from collections.abc import Sequence

_ENOUGH = 2  # words of meaning
_MOST_LETTERS = 2000  # that are read: a command line may be a megabyte, and normalising is not linear
_ASCII_WORD = re.compile(r"[a-z0-9]+")
_SHOWN = 40  # letters of what was written that a sentence repeats


def _split(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Words that join others, and mean nothing alone.
_JOINING = _split("""
    a an the of to for from on in at by with and or but is are be was it its this that these those i me
    my we us our you your he she they as so if not no yes ok okay please just only some any more again
    another der die das ein eine und oder mit ist für zu le la les un une des et ou pour el los una y o
    para de en
""")
# Words that people write where something is asked for and nothing is meant.
_FILLER = _split("""
    test tests tested testing tester testrun try tries trying trial run runs running rerun job jobs task
    tasks work works working experiment experiments experimental exp expt experimenting foo bar baz qux
    foobar quux asd asdf qwe qwerty zxc jkl lorem ipsum dolor blah bla tmp temp temporary dummy sample
    example examples demo stuff thing things something anything nothing whatever misc various todo tbd
    fixme na none null nil nan undefined unknown unnamed untitled default purpose reason goal script
    scripts code program command python bash shell hello hi hey world abc xyz xxx new old final first
    second third last next quick simple small little short important urgent do doing done go versuch
    essai essais prueba pruebas prova teste probe probieren probando тест тесты проба परीक्षण اختبار
    تجربة בדיקה ทดสอบ
""")
_DENSE_FILLER = (
    "测试",
    "測試",
    "测验",
    "实验",
    "實驗",
    "試驗",
    "実験",
    "試験",
    "試し",
    "テスト",
    "테스트",
    "시험",
    "실험",
)
_KEYBOARD = ("qwertyuiop", "qwertzuiop", "azertyuiop", "asdfghjkl", "qsdfghjklm", "zxcvbnm", "yxcvbnm")
_DENSE = (  # each letter a syllable or more
    (0x3040, 0x30FF),  # kana
    (0x3100, 0x312F),  # bopomofo
    (0x3400, 0x9FFF),  # ideographs
    (0xA000, 0xA48F),  # Yi
    (0xAC00, 0xD7A3),  # Hangul
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)
_UNSPACED = (  # alphabets whose words stand without blanks
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x0F00, 0x0FFF),  # Tibetan
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x1950, 0x19DF),  # Tai
    (0xA980, 0xA9DF),  # Javanese
)
_DENSE_LETTERS, _UNSPACED_LETTERS = 2, 4  # to a word
_EXTENSIONS = (".py", ".sh", ".r", ".jl", ".pl", ".js", ".rb", ".ipynb", ".yaml", ".yml")
# What programs are called whatever they do.
_GENERAL = _split("""
    train training trainer main app eval evaluate script job run sh bash zsh python python3 node java
    julia true false sleep echo cat env srun mpirun torchrun accelerate make pytest jupyter notebook
    start launch
""")
_EXAMPLE = "Does {} beat the baseline on the held-out set?"


def says_nothing(purpose: str, name: str = "", command: Sequence[str] = ()) -> str | None:
    """Why a purpose tells nothing to somebody who reads it later, in a sentence; None if it does."""
    words = _words(purpose)
    if not any(letter.isalpha() for word in words for letter in word):
        why = "has no words"
    elif _repeats(words, name, command):
        why = "is what the job is called"
    elif _meaning(words) < _ENOUGH:
        why = "is too little for others to go by"
    else:
        return None
    return (
        f"{_quoted(purpose)} {why}, so nobody could say later whether it was worth it; "
        f'say in one sentence what you will know when this is done, like "{example(name)}"'
    )


def example(name: str) -> str:
    """A question that a job of this name might answer."""
    stem = name.strip()
    for extension in _EXTENSIONS:
        stem = stem.removesuffix(extension)
    said = [word for word in _words(stem) if word not in _GENERAL]
    telling = 0 < len(stem) <= _SHOWN and _meaning(said) > 0 and '"' not in stem
    return _EXAMPLE.format(stem if telling else "the larger model")


def _quoted(text: str) -> str:
    """As it was written, short, and with nothing in it that upsets a terminal."""
    text = " ".join(text[: 2 * _SHOWN].split())
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")


def _words(text: str) -> list[str]:
    """Runs of letters and digits, as if written small. Marks belong to their letters."""
    text = text[:_MOST_LETTERS]
    if text.isascii():  # the same, at a tenth of the cost
        return _ASCII_WORD.findall(text.lower())
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(_kept(letter) for letter in folded).split()


def _kept(letter: str) -> str:
    kind = unicodedata.category(letter)
    if kind == "Cf":  # joiners, of Persian for example, stand within a word
        return ""
    if kind[0] not in "LMN":
        return " "
    return f" {letter} " if _is_in(letter, _DENSE) else letter


def _repeats(words: list[str], name: str, command: Sequence[str]) -> bool:
    """Whether it has no other words than the name, or is a part of the command line."""
    if set(words) <= set(_words(name)):
        return True
    line = " ".join(_words(" ".join(command)))
    return f" {' '.join(words)} " in f" {line} "


def _meaning(words: list[str]) -> int:
    """How many different words there are that mean something."""
    spaced = {_stem(word) for word in words if word.isascii() or not _is_in(word[0], (*_DENSE, *_UNSPACED))}
    found = sum(1 for word in spaced if _means(word))
    others = [word for word in words if not word.isascii()]
    return found + _dense(others) + _unspaced(others) if others else found


def _dense(words: list[str]) -> int:
    text = "".join(word if _is_in(word[0], _DENSE) else " " for word in words)
    for filler in _DENSE_FILLER:
        text = text.replace(filler, " ")
    return -(-len(set(text) - {" "}) // _DENSE_LETTERS)


def _unspaced(words: list[str]) -> int:
    letters = {c for word in words if word not in _FILLER for c in word if _is_in(c, _UNSPACED)}
    return len(letters) // _UNSPACED_LETTERS


def _stem(word: str) -> str:
    """Without a number behind it (run3), and once if it is written several times in a row (testtest)."""
    stem = word.rstrip("0123456789") or word
    return stem[: (stem + stem).index(stem, 1)]


def _means(word: str) -> bool:
    if len(word) < 2 or not any(letter.isalpha() for letter in word):
        return False
    return word not in _FILLER and word not in _JOINING and not _is_mashed(word)


def _is_mashed(word: str) -> bool:
    """Neighbours on a keyboard."""
    return len(word) > 3 and any(word in row or word[::-1] in row for row in _KEYBOARD)


def _is_in(letter: str, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(first <= ord(letter) <= last for first, last in ranges)
