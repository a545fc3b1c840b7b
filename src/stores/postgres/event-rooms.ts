// The tables of events, called rooms, one for each 100,000 sessions: which are attached to the store, and which are no
// longer needed. The function make_room (postgres-schema.ts) creates them.
import { Fault } from '../../kernel/failure.ts'
import { ROOM } from './postgres-schema.ts'
import type { Sql } from './sql.ts'

/** `busy`: others read or write too much now. `denied`: the table has another owner. */
export type FreedRooms = {
  readonly dropped: readonly string[]
  readonly left: readonly { readonly table: string; readonly why: 'busy' | 'denied' }[]
}

const ATTACHED = `select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = '~events'::regclass`

/** The name of the detached table with a session's events; null if the table is attached. */
export async function findDetachedTable(sql: Sql, n: number): Promise<string | null> {
  const table = `events_${Math.floor(n / ROOM)}`
  const found = await sql.ask('attached', `${ATTACHED} and c.relname = $1`, [table])
  return found.length > 0 ? null : table
}

/** A number taken by a commit in progress is never this far behind. */
const MARGIN = 10_000
const inRoomSql = (room: string): string => `s.n >= (${room}) * ${ROOM} and s.n < (${room} + 1) * ${ROOM}`
const EMPTY = `select r.room::float8 as room from (
    select substring(a.relname from '^events_([0-9]{1,12})$')::bigint as room from (${ATTACHED}) a
  ) r where r.room < (select (last_value - ${MARGIN}) / ${ROOM} from ~numbers)
  and not exists (select 1 from ~sessions s where ${inRoomSql('r.room')}) order by r.room`

/** All other sessions wait while this waits for its lock, so it must not wait long. */
const LOCK_MS = 200
const dropRoomSql = (room: number): string => `do $do$ begin
  set local lock_timeout = ${LOCK_MS};
  lock table ~events in access exclusive mode;
  if exists (select 1 from ~sessions s where ${inRoomSql(String(room))}) or exists (select 1 from ~events_${room}) then
    return;
  end if;
  alter table ~events detach partition ~events_${room};
  drop table ~events_${room};
end $do$`

export async function freeRooms(sql: Sql): Promise<FreedRooms> {
  const [dropped, left]: [string[], { table: string; why: 'busy' | 'denied' }[]] = [[], []]
  for (const { room } of await sql.ask<{ room: number }>('empty rooms', EMPTY)) {
    const table = `events_${room}`
    try {
      await sql.ask('', dropRoomSql(room))
      if ((await findDetachedTable(sql, room * ROOM)) !== null) dropped.push(table)
    } catch (error) {
      if (!(error instanceof Fault) || (error.code !== 'store_busy' && error.code !== 'io_error')) throw error
      left.push({ table, why: error.code === 'store_busy' ? 'busy' : 'denied' })
    }
  }
  return { dropped, left }
}
