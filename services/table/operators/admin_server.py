"""TableAdminService: gRPC in, domain out, nothing else."""

from typing import TYPE_CHECKING, Any, Final, Protocol

from doorcard.table.v1 import admin_pb2, admin_pb2_grpc

from services.runtime.errors import InvalidArgument
from services.runtime.ids import check_player_id, check_uuid
from services.runtime.pages import page_size
from services.table.draft.audit import Instruction, instruction
from services.table.operators import inspection, operators, schedules
from services.table.operators.creating import Creator
from services.table.operators.operators import Operators
from services.table.operators.scheduler import Scheduler
from services.table.operators.schedules import Schedules
from services.table.operators.templates import Templates, check_template
from services.table.state import views
from services.table.state.creation import new_table
from services.table.state.state import digest
from services.table.store.store import Store
from services.table.tables.tables import Tables

if TYPE_CHECKING:
    from grpc.aio import ServicerContext

    Context = ServicerContext[Any, Any]

SERVICE_NAME: Final = admin_pb2.DESCRIPTOR.services_by_name["TableAdminService"].full_name
PAGE_DEFAULT: Final = 50
PAGE_MAX: Final = 200


class Mover(Protocol):
    """Finds the players of a table seats at others."""

    async def break_up(self, table_id: str) -> dict[str, str]:
        """Player -> the table where a seat is kept for him; empty for none."""


class TableAdminServer(admin_pb2_grpc.TableAdminServiceServicer):
    """Tables for operators. time_zone: IANA name of the room's."""

    def __init__(
        self,
        store: Store,
        tables: Tables,
        operating: Operators,
        creator: Creator,
        moves: Mover,
        *,
        time_zone: str,
    ) -> None:
        self._store = store
        self._tables = tables
        self._operators = operating
        self._creator = creator
        self._moves = moves
        self._time_zone = time_zone
        self._templates = Templates(store)
        self._schedules = Schedules(store)
        self.scheduler: Final = Scheduler(
            store, self._templates, self._schedules, creator, operating
        )

    # Templates

    async def PutTemplate(  # noqa: N802 (gRPC's names)
        self, request: admin_pb2.PutTemplateRequest, _context: "Context"
    ) -> admin_pb2.PutTemplateResponse:
        by = instruction("put_template", request.request_id, request.reason)
        if request.replaces_version < 0:
            raise InvalidArgument.of_field("replaces_version", "must be 0 or more")
        # What a creation would be refused for is refused here, an unknown rake schedule too.
        await self._creator.complete(check_template(request.name, request.table))
        template = await self._templates.put(
            request.name, request.table, request.replaces_version, by
        )
        return admin_pb2.PutTemplateResponse(template=template.shown())

    async def GetTemplate(  # noqa: N802
        self, request: admin_pb2.GetTemplateRequest, _context: "Context"
    ) -> admin_pb2.GetTemplateResponse:
        template = await self._templates.get(request.name)
        return admin_pb2.GetTemplateResponse(template=template.shown())

    async def ListTemplates(  # noqa: N802
        self, request: admin_pb2.ListTemplatesRequest, _context: "Context"
    ) -> admin_pb2.ListTemplatesResponse:
        found, last = await self._templates.page(
            request.page_token, page_size(request.page_size, PAGE_DEFAULT, PAGE_MAX)
        )
        return admin_pb2.ListTemplatesResponse(
            templates=[each.shown() for each in found], next_page_token=last
        )

    async def DeleteTemplate(  # noqa: N802
        self, request: admin_pb2.DeleteTemplateRequest, _context: "Context"
    ) -> admin_pb2.DeleteTemplateResponse:
        by = instruction("delete_template", request.request_id, request.reason)
        if await self._schedules.uses(request.name):
            raise schedules.in_use(request.name)
        await self._templates.delete(request.name, by)
        return admin_pb2.DeleteTemplateResponse()

    async def CreateTableFromTemplate(  # noqa: N802
        self, request: admin_pb2.CreateTableFromTemplateRequest, _context: "Context"
    ) -> admin_pb2.CreateTableFromTemplateResponse:
        by = instruction("create_table_from_template", request.request_id, request.reason)
        template = await self._templates.get(request.template)
        new = new_table(template.creation(request.request_id, request.name))
        asked = digest(request.request_id, request.SerializeToString(deterministic=True))
        table = await self._creator.create(new, by, asked=asked, template=template.name)
        return admin_pb2.CreateTableFromTemplateResponse(table=views.view(table, views.PUBLIC))

    # Schedules

    async def ScheduleTable(  # noqa: N802
        self, request: admin_pb2.ScheduleTableRequest, _context: "Context"
    ) -> admin_pb2.ScheduleTableResponse:
        by = instruction("schedule_table", request.request_id, request.reason)
        wanted = schedules.wanted_of(request, self._time_zone, by)
        await self._templates.get(request.template)
        schedule_id, schedule = await self._schedules.add(wanted, by)
        return admin_pb2.ScheduleTableResponse(scheduled=schedules.shown(schedule_id, schedule))

    async def ListScheduledTables(  # noqa: N802
        self, request: admin_pb2.ListScheduledTablesRequest, _context: "Context"
    ) -> admin_pb2.ListScheduledTablesResponse:
        found, last = await self._schedules.page(
            request.page_token, page_size(request.page_size, PAGE_DEFAULT, PAGE_MAX)
        )
        return admin_pb2.ListScheduledTablesResponse(
            scheduled=[schedules.shown(*each) for each in found], next_page_token=last
        )

    async def CancelScheduledTable(  # noqa: N802
        self, request: admin_pb2.CancelScheduledTableRequest, _context: "Context"
    ) -> admin_pb2.CancelScheduledTableResponse:
        by = instruction("cancel_scheduled_table", request.request_id, request.reason)
        schedule_id = check_uuid(request.schedule_id, "schedule_id")
        schedule = await self._schedules.cancel(schedule_id, by)
        return admin_pb2.CancelScheduledTableResponse(
            scheduled=schedules.shown(schedule_id, schedule)
        )

    # Tables

    async def PauseTable(  # noqa: N802
        self, request: admin_pb2.TableAdminServicePauseTableRequest, _context: "Context"
    ) -> admin_pb2.TableAdminServicePauseTableResponse:
        by = _by("pause_table", request)
        version = await self._operators.pause(_table(request), by)
        return admin_pb2.TableAdminServicePauseTableResponse(version=version)

    async def ResumeTable(  # noqa: N802
        self, request: admin_pb2.TableAdminServiceResumeTableRequest, _context: "Context"
    ) -> admin_pb2.TableAdminServiceResumeTableResponse:
        by = instruction("resume_table", request.request_id, request.reason)
        version = await self._operators.resume(_table(request), by)
        return admin_pb2.TableAdminServiceResumeTableResponse(version=version)

    async def CloseTable(  # noqa: N802
        self, request: admin_pb2.CloseTableRequest, _context: "Context"
    ) -> admin_pb2.CloseTableResponse:
        version, closed = await self._operators.close(_table(request), _by("close_table", request))
        return admin_pb2.CloseTableResponse(version=version, closed=closed)

    async def SetMaintenance(  # noqa: N802
        self, request: admin_pb2.SetMaintenanceRequest, _context: "Context"
    ) -> admin_pb2.SetMaintenanceResponse:
        by = _by("set_maintenance", request)
        version, begun = await self._operators.rest(_table(request), by)
        return admin_pb2.SetMaintenanceResponse(version=version, begun=begun)

    async def VoidHand(  # noqa: N802
        self, request: admin_pb2.VoidHandRequest, _context: "Context"
    ) -> admin_pb2.VoidHandResponse:
        hand_id = check_uuid(request.hand_id, "hand_id")
        by = _by("void_hand", request)
        version = await self._operators.void(_table(request), hand_id, by)
        return admin_pb2.VoidHandResponse(version=version)

    async def RemovePlayer(  # noqa: N802
        self, request: admin_pb2.RemovePlayerRequest, _context: "Context"
    ) -> admin_pb2.RemovePlayerResponse:
        player_id = check_player_id(request.player_id)
        by = _by("remove_player", request)
        version, left = await self._operators.remove(_table(request), player_id, by)
        return admin_pb2.RemovePlayerResponse(version=version, left=left)

    async def Announce(  # noqa: N802
        self, request: admin_pb2.AnnounceRequest, _context: "Context"
    ) -> admin_pb2.AnnounceResponse:
        by = instruction("announce", request.request_id)
        text = operators.check_text(request.text)
        if request.table_id:
            version = await self._operators.announce(_table(request), text, by)
            return admin_pb2.AnnounceResponse(version=version)
        await self.scheduler.announce(text, by)
        return admin_pb2.AnnounceResponse()

    async def BreakTable(  # noqa: N802
        self, request: admin_pb2.BreakTableRequest, _context: "Context"
    ) -> admin_pb2.BreakTableResponse:
        table_id, by = _table(request), _by("break_table", request)
        await self._operators.begin_moving(table_id, by)
        placed = await self._moves.break_up(table_id)
        version, _ = await self._operators.close(table_id, by)
        return admin_pb2.BreakTableResponse(
            version=version,
            moved=[
                admin_pb2.MovedPlayer(player_id=player, table_id=target)
                for player, target in placed.items()
                if target
            ],
            unplaced=[player for player, target in placed.items() if not target],
        )

    async def InspectTable(  # noqa: N802
        self, request: admin_pb2.InspectTableRequest, _context: "Context"
    ) -> admin_pb2.InspectTableResponse:
        table_id = _table(request)
        shard = self._store.shard_of(table_id)
        undrained_ms = await self._store.undrained_age_ms(shard)
        # Read last: nothing may be awaited between the table and its view.
        table = await self._tables.read(table_id)
        return inspection.inspect(table, shard, undrained_ms)


def _by(action: str, request: Any) -> Instruction:
    """For calls that need a reason."""
    return instruction(action, request.request_id, request.reason, needs_reason=True)


def _table(request: Any) -> str:
    return check_uuid(request.table_id, "table_id")
