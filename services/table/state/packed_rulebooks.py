"""Rulebooks as tables keep them: whole, in some tens of bytes."""

import zlib
from functools import lru_cache
from typing import Any, Final

import msgspec

from services.game.rulebook import Rulebook

_RULEBOOK_TEXT: Final = (
    b'{"name":"club","game":"high","wild_deuces":false,"bring_in_rule":"forced","bring_in_may_'
    b'open_full":true,"short_all_in_reopens_at":"half","raise_cap":3,"cap_lifted":"never","fou'
    b'rth_street_pair":true,"first_to_act_tie":"position","burn_cards":false,"short_deck":"com'
    b'munity","community_card_opens":true,"showdown":"all_show","all_in_face_up":false,"odd_ch'
    b'ip_high":"position","odd_chip_low":"position","odd_chip_remainder":"one_each","clock":{"'
    b'act_s":30,"countdown_s":0,"reconnect_s":0,"time_bank_s":0},"time_out":"check_or_fold","b'
    b'uy_in":"equal_stacks","ante_confirmation":"no","rake_schedule":"","rake_on_third_street"'
    b':"no","stakes":[{"name":"5/10","ante":1,"bring_in":2,"small_bet":5,"big_bet":10,"buy_in_'
    b'min":200,"buy_in_max":200}]}'
)
"""What rulebooks have in common, so that only the rest is stored. It is part of the schema: with
another text no stored table can be read.
"""


def pack_rulebook(rulebook: Rulebook) -> bytes:
    """The whole rulebook in some tens or hundreds of bytes."""
    packer = zlib.compressobj(9, zdict=_RULEBOOK_TEXT)
    return packer.compress(msgspec.json.encode(rulebook.to_mapping())) + packer.flush()


@lru_cache(maxsize=256)
def unpack_rulebook(packed: bytes) -> Rulebook:
    """The rulebook of `pack_rulebook`."""
    unpacker = zlib.decompressobj(zdict=_RULEBOOK_TEXT)
    text = unpacker.decompress(packed) + unpacker.flush()
    return Rulebook.from_mapping(_completed(msgspec.json.decode(text)))


def _completed(settings: dict[str, Any]) -> dict[str, Any]:
    """A stored rulebook with what is newer than it: as if the house did not use it."""
    clock = {"time_bank_accrual_s": 0, "time_bank_accrual_hands": 0, **settings["clock"]}
    return {"protection_per_day": 0, **settings, "clock": clock}
