"""What a viewer has seen: nothing twice, nothing left out."""

from services.client.progress import Progress, Verdict

NEW, SEEN, GAP = Verdict.NEW, Verdict.SEEN, Verdict.GAP


def test_a_version_may_come_in_two_frames_of_one_message() -> None:
    progress = Progress(0)
    progress.joining(gateway=False)
    assert progress.snapshot(7, named=True) is NEW
    assert progress.update(7, 1, named=True) is SEEN
    assert progress.update(8, 1, named=True) is NEW
    assert progress.update(8, 1, named=True) is NEW
    assert progress.update(8, 2, named=True) is SEEN
    assert progress.version == 8


def test_a_missing_version_is_a_gap_and_changes_nothing() -> None:
    progress = Progress(5)
    progress.joining(gateway=False)
    assert progress.update(7, 1, named=True) is GAP
    assert progress.update(6, 1, named=True) is NEW


def test_what_a_former_stream_brought_is_not_taken_for_half_a_version() -> None:
    progress = Progress(5)
    progress.joining(gateway=False)
    assert progress.update(6, 1, named=True) is NEW
    progress.joining(gateway=False)
    assert progress.update(6, 1, named=True) is SEEN


def test_at_a_gateway_frames_for_all_count_once_a_frame_named_him() -> None:
    progress = Progress(5)
    progress.joining(gateway=True)
    assert progress.update(6, 1, named=False) is SEEN
    assert progress.update(6, 2, named=True) is NEW
    assert progress.update(6, 2, named=True) is NEW
    assert progress.update(7, 3, named=False) is NEW
    assert progress.update(7, 3, named=True) is NEW


def test_at_a_gateway_a_resume_without_news_begins_at_the_version_it_reached() -> None:
    progress = Progress(5)
    progress.joining(gateway=True)
    assert progress.update(5, 1, named=True) is SEEN
    assert progress.update(6, 2, named=False) is NEW


def test_a_snapshot_for_others_is_not_his() -> None:
    progress = Progress(0)
    progress.joining(gateway=True)
    assert progress.snapshot(9, named=False) is SEEN
    assert progress.snapshot(9, named=True) is NEW
    assert progress.update(10, 1, named=False) is NEW
