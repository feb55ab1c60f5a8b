"""`doorcard top`: the dashboards live in the terminal."""

from contextlib import ExitStack
from typing import Annotated

import typer

from services.local.prometheus import (
    Prometheus,
    PrometheusError,
    local_prometheus,
    room_metrics,
)
from services.local.room import home_folder


def top_command(
    prometheus: Annotated[
        str,
        typer.Option(
            envvar="DOORCARD_PROMETHEUS",
            help="Its URL. Without one, a Prometheus of our own watches the local room.",
        ),
    ] = "",
    minutes: Annotated[float, typer.Option(min=0.5, help="How far back the curves go.")] = 5.0,
    every: Annotated[float, typer.Option(min=0.5, help="Seconds between two looks.")] = 2.0,
) -> None:
    """Show the dashboards live in the terminal. Status 1: Prometheus does not answer."""
    # Every other command would wait for this import too.
    from services.local.top_view import Top  # noqa: PLC0415

    with ExitStack() as stack:
        try:
            if prometheus:
                source = Prometheus(prometheus)
                source.scrape_interval_s()
            else:
                source = stack.enter_context(local_prometheus(room_metrics(home_folder())))
        except PrometheusError as error:
            typer.secho(str(error), fg="red", err=True)
            raise typer.Exit(1) from None
        Top(source, minutes * 60, every).run()
