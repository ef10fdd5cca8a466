"""What a task hands over: one conversation or one raw text, and how an answer to it is judged."""
import random
from dataclasses import dataclass, field

from grammar import pick


@dataclass
class Sample:
    """`messages` ends with the assistant's last answer. Every assistant message is trained on.

    check: how score.py judges an answer to the last question: "exact", or the name of a rule there, with `expect` for that rule.
    """
    task: str
    messages: list[dict] = field(default_factory=list)
    text: str = ""                     # raw text instead of a conversation
    check: str = "exact"
    expect: dict = field(default_factory=dict)

    @property
    def answer(self) -> str:
        return self.messages[-1]["content"]


def turns(*pairs: tuple[str, str], system: str = "") -> list[dict]:
    """Messages from (user, assistant) pairs."""
    out = [{"role": "system", "content": system}] if system else []
    for user, assistant in pairs:
        out += [{"role": "user", "content": user}, {"role": "assistant", "content": assistant}]
    return out


_OPENERS = ["Hi! ", "Hello. ", "Hello! ", "Hey, ", "Please tell me: ", "I have a question. ", "Quick question: ", "Can you help me? ", "Next question: ",
            "Okay. ", "Now this: ", "Please answer: ", "Good morning. ", "One more: ", "So, ", "Tell me, ", "Rill, ", "Well, ", "Thanks. "]
_CLOSERS = [" Please.", " Thanks!", " Thank you.", " Please answer briefly.", " Just the answer, please.", " please"]


def loosely(rng: random.Random, text: str) -> str:
    """People leave out capitals and full stops, say hello first, or thank in advance. Quoted material is left alone."""
    r = rng.random()
    if r < 0.62:
        return text
    if r < 0.70:
        return text[0].lower() + text[1:]
    if r < 0.78:
        return text.rstrip("?.!")
    if r < 0.84:
        return (text[0].lower() + text[1:]).rstrip("?.!")
    if r < 0.92:
        opener = pick(rng, _OPENERS)
        return opener + (text[0].lower() + text[1:] if opener.endswith(", ") else text)
    if r < 0.96 and text[-1] in ".?!":
        return text + pick(rng, _CLOSERS)
    return text.lower() if not any(c in text for c in "'\"\n") and text[-1] in "?." and rng.random() < 0.3 else text
