"""A shuffler that speaks the contract and deals what a script says: for adjudication and tests.

    async with scripted_shuffler(settings, Script({"table-1": [ScriptedDeck(deck_of("7c8d9s"))]})):

or as a process of its own, with the environment of a shuffler: `python -m scripted_shuffler
SCRIPT.json`, where the file is `{"table-1": [{"cards": "7c8d9s", "reshuffled": ""}]}` and a table
"*" stands for every table that is not named.
"""

from scripted_shuffler.script import Script, ScriptedDeck, deck_of
from scripted_shuffler.server import scripted_shuffler

__all__ = ["Script", "ScriptedDeck", "deck_of", "scripted_shuffler"]
