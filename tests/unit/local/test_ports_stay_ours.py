"""Held ports: free when taken, ours until given back."""

import socket
from collections.abc import Iterator

import pytest

from services.local.ports import HeldPorts

HOST = "127.0.0.1"


@pytest.fixture
def ports() -> Iterator[HeldPorts]:
    held = HeldPorts()
    yield held
    held.release()


@pytest.fixture
def another_room() -> Iterator[HeldPorts]:
    held = HeldPorts()
    yield held
    held.release()


def listener(port: int, *options: int) -> socket.socket:
    listening = socket.socket()
    for option in options:
        listening.setsockopt(socket.SOL_SOCKET, option, 1)
    listening.bind((HOST, port))
    listening.listen()
    return listening


SERVICE = (socket.SO_REUSEADDR, socket.SO_REUSEPORT)
DATABASE = (socket.SO_REUSEADDR,)


def test_a_service_listens_on_its_held_port_life_after_life(ports: HeldPorts) -> None:
    port = ports.for_service()
    for _life in range(2):
        with listener(port, *SERVICE) as listening, socket.create_connection((HOST, port)):
            accepted, _ = listening.accept()
            # Closed by the server first, so the connection lingers on our port.
            accepted.close()


def test_a_database_listens_on_its_held_port_life_after_life(ports: HeldPorts) -> None:
    port = ports.for_database()
    for _life in range(2):
        listener(port, *DATABASE).close()


def test_between_two_lives_clients_are_refused(ports: HeldPorts) -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, ports.for_service()))


def test_a_stranger_cannot_take_a_held_port(ports: HeldPorts) -> None:
    taken = ((ports.for_service(), ()), (ports.for_service(), DATABASE), (ports.for_database(), ()))
    for port, options in taken:
        with pytest.raises(OSError, match="in use"):
            listener(port, *options)


def test_the_preferred_port_is_taken_if_it_is_nobodys(ports: HeldPorts) -> None:
    probe = HeldPorts()
    port = probe.for_service()
    probe.release()
    assert ports.for_service(port) == port


def test_two_rooms_never_share_a_port(ports: HeldPorts, another_room: HeldPorts) -> None:
    service, database = ports.for_service(), ports.for_database()
    assert another_room.for_service(service) != service
    assert another_room.for_database(database) != database
    with listener(service, *SERVICE), listener(database, *DATABASE):
        assert another_room.for_service(service) != service
        assert another_room.for_database(database) != database


def test_connections_that_linger_do_not_take_a_services_port_away(ports: HeldPorts) -> None:
    earlier = HeldPorts()
    port = earlier.for_service()
    with listener(port, *SERVICE) as listening, socket.create_connection((HOST, port)) as client:
        accepted, _ = listening.accept()
        accepted.close()
        client.recv(1)
    earlier.release()
    assert ports.for_service(port) == port
