"""TO BE REPLACED: what makes an answer good. Only this file knows what the training is for.

The function below rewards short answers. It is there so that the training can be tried, and it
teaches a model nothing of use.
"""

from typing import Any


def reward(completions: list[Any], **columns: Any) -> list[float]:
    """Return a number for each answer: the higher, the better.

    Args:
        completions: the answers, as text, or as messages where the prompts are messages.
        columns: what else the data has for each answer, as ``prompts`` or ``solution``.
    """
    texts = [answer if isinstance(answer, str) else answer[-1]["content"] for answer in completions]
    return [-float(len(text)) for text in texts]
