"""Random wordings: the text on a page, its labels, and the phrases that ask for them."""

from __future__ import annotations

import random
import re
import string
from collections.abc import Callable, Sequence
from typing import Any

_NUMBERED = ("{stem} {number}", "{stem} #{number}", "{number}. {stem}")
_SEPARATORS = (" ", " ", " ", " ", "-", "_", "/", " & ", ", ", ": ")


def lexicon(tokenizer: Any) -> list[str]:
    """The words of a tokenizer's vocabulary: what begins with a space and has three small letters or more, no others.

    A space is written as byte-level vocabularies (SmolLM2, Qwen) or as SentencePiece do.
    """
    return sorted(token[1:] for token in tokenizer.get_vocab() if re.fullmatch("[Ġ▁][a-z]{3,}", token))


class Words:
    """Draws text from a lexicon by one source of randomness. Labels are never given twice, so each names one thing."""

    def __init__(self, lexicon: Sequence[str], chooser: random.Random) -> None:
        self._lexicon, self._chooser = lexicon, chooser
        self._given: dict[str, str] = {}  # in lower case, and as they were given

    def word(self) -> str:
        """A word of the lexicon, in lower case."""
        return self._chooser.choice(self._lexicon)

    def label(self, longest: int = 3) -> str:
        """A name of at most ``longest`` words, or a code if 0, that was not given before, whatever its case."""
        while (label := self._cased(self._name(longest)) if longest else self.code()).lower() in self._given:
            pass
        self._given[label.lower()] = label
        return label

    def labels(self, count: int, longest: int) -> list[str]:
        """So many names: they have nothing in common, or are one name with a number each."""
        if self._chooser.random() < 0.5:
            return [self.label(longest) for _ in range(count)]
        stem, form = self.label(1), self._chooser.choice(_NUMBERED)
        return [form.format(stem=stem, number=number) for number in range(1, count + 1)]

    def sentence(self, shortest: int, longest: int) -> str:
        """Running text of so many words."""
        words = [self.word() for _ in range(self._chooser.randint(shortest, longest))]
        return " ".join(words).capitalize() + self._chooser.choice((".", ".", ".", "", "!", "?"))

    def value(self) -> str:
        """What a person might type into a field: a word, a name, a number, a code, an address, a date."""
        return self._chooser.choice(self._values)()

    @property
    def _values(self) -> tuple[Callable[[], str], ...]:
        return (self.word, self._cased_word, self.number, self.code, self._person, self._address, self._date)

    def number(self) -> str:
        """A number of one to five digits, at times a price or a share."""
        digits = str(self._chooser.randrange(10 ** self._chooser.randint(1, 5)))
        return self._chooser.choice(("{}", "{}", "{}", "${}", "{}%", "-{}", "{}.5", "#{}")).format(digits)

    def code(self) -> str:
        """Letters and digits that are no word."""
        letters = self._chooser.choice((string.ascii_letters, string.ascii_lowercase, string.ascii_uppercase))
        return "".join(self._chooser.choice(letters + string.digits) for _ in range(self._chooser.randint(2, 8)))

    def _name(self, longest: int) -> str:
        draw = self._chooser.random()
        if draw < 0.15:
            return self._chooser.choice((self.value, self.code))()
        if draw < 0.25 and self._given:
            return self._much_like(self._chooser.choice(list(self._given.values())))
        words = [self.word() for _ in range(self._chooser.randint(1, longest))]
        return self._chooser.choice(_SEPARATORS).join(words)

    def _much_like(self, label: str) -> str:
        """A name that has another one in it, or is within it, as ok and okay."""
        return self._chooser.choice(
            (f"{label} {self.word()}", f"{label}{self._chooser.choice('adnrsy')}", label[:-1].strip() or "a")
        )

    def _cased(self, text: str) -> str:
        return self._chooser.choice((str, str, str.title, str.title, str.capitalize, str.upper))(text)

    def _cased_word(self) -> str:
        return self._cased(self.word())

    def _person(self) -> str:
        return f"{self.word().title()} {self.word().title()}"

    def _address(self) -> str:
        return f"{self.word()}@{self.word()}.{self._chooser.choice(('com', 'org', 'net', 'io'))}"

    def _date(self) -> str:
        year, month, day = (self._chooser.randint(*span) for span in ((1950, 2049), (1, 12), (1, 28)))
        return self._chooser.choice(("{0}-{1:02}-{2:02}", "{2:02}/{1:02}/{0}", "{1}/{2}/{0}")).format(year, month, day)
