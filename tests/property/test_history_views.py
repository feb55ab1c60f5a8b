"""Whatever happened in a hand, no view of it holds a card that its reader may not see."""

from doorcard.history.v1.history_pb2 import HandRecord
from hypothesis import given
from hypothesis import strategies as st

from services.history import views
from tests import hand_records as hands

SEATS = sorted(hands.NAMES)


@st.composite
def records(draw: st.DrawFn) -> HandRecord:
    """A hand whose flags say anything at all, plausible or not."""
    record = draw(st.sampled_from([hands.showdown(), hands.uncontested()]))
    keep = draw(st.lists(st.booleans(), min_size=len(record.events), max_size=len(record.events)))
    events = [event for event, kept in zip(record.events, keep, strict=True) if kept]
    del record.events[:]
    # What was turned up is public; it is told by flags here.
    record.events.extend(each for each in events if each.WhichOneof("event") != "shown")
    record.void = draw(st.booleans())
    for player in record.players:
        player.folded = draw(st.booleans())
        player.at_showdown = draw(st.booleans())
        player.shown = draw(st.integers(0, 3)) == 0
    return record


@given(records(), st.sampled_from([*hands.NAMES.values(), "eve"]))
def test_no_view_holds_a_card_its_reader_may_not_see(record: HandRecord, reader: str) -> None:
    contenders = [player for player in record.players if not player.folded]
    raw = views.for_player(record, reader).SerializeToString()
    played = any(player.player_id == reader for player in record.players)
    for player in record.players:
        stayed = (
            played
            and player.at_showdown
            and not player.folded
            and len(contenders) > 1
            and not record.void
        )
        if player.player_id == reader or player.shown or stayed:
            continue
        for card in hands.down_cards_of(player.seat):
            assert card.encode() not in raw
    assert hands.SEALED_DECK not in raw
    assert hands.INPUTS not in raw
