"""Triggers that come doubled and in any order."""

import random
from typing import Final

from pydantic import SecretStr

from services.local.room import SHARDS
from services.settlement import triggers
from services.settlement.app import make_app
from services.settlement.settings import SettlementSettings
from tests.chaos.rooms import FaultyRoom

TIMES: Final = 40
"""Each trigger, at once."""


def flood(room: FaultyRoom, rng: random.Random) -> None:
    """Put many of each trigger into the broker, shuffled."""
    app = make_app(SettlementSettings(service="test", broker_url=SecretStr(room.url("broker"))))
    work = [(triggers.DRAIN, (shard,)) for shard in range(SHARDS)]
    work += [(triggers.RECONCILE, (shard,)) for shard in range(SHARDS)]
    everything = [*work, (triggers.RESERVATIONS, ()), (triggers.LEDGER, ())] * TIMES
    rng.shuffle(everything)
    for task, args in everything:
        app.send_task(task, args=args, queue=triggers.QUEUES[task])
