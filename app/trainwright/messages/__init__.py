"""Sentences as values: the core names a message, the edges render it in a language."""

from trainwright.messages.catalogue import LANGUAGES, Language, render
from trainwright.messages.error import UserError
from trainwright.messages.message import Message

__all__ = ["LANGUAGES", "Language", "Message", "UserError", "render"]
