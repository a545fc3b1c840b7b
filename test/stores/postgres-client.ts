// Plain connections to a Postgres server of the tests, for the tests and for the processes that they start.
import pg from 'pg'
import { type Connections, type LaneSql, type SqlValue, Stale } from '../../src/stores/postgres/sql.ts'

/** Where a server listens. */
export type Place = { readonly socket: string; readonly port: number }

export function clientOf({ socket, port }: Place): pg.Client {
  const client = new pg.Client({ host: socket, port, user: 'terret', database: 'postgres' })
  client.on('error', () => {})
  return client
}

/** One client as a Sql. */
function sqlOf(client: pg.Client): LaneSql {
  let last: Promise<unknown> = Promise.resolve()
  return {
    async ask<Row extends object>(
      name: string,
      text: string,
      values: readonly SqlValue[] = [],
    ): Promise<readonly Row[]> {
      const before = last
      let done = (): void => {}
      last = new Promise<void>((resolve) => (done = resolve))
      await before
      try {
        const { rows } = await client.query<Row>({ name, text, values: [...values] })
        return rows
      } catch (error) {
        if (error instanceof pg.DatabaseError && (error.code === '22012' || error.code === '40P01')) throw new Stale()
        throw error
      } finally {
        done()
      }
    },
    async transaction(work) {
      await client.query('begin')
      try {
        const done = await work(this)
        await client.query('commit')
        return done
      } catch (error) {
        await client.query('rollback')
        throw error
      }
    },
  }
}

export type Change = (sql: LaneSql) => LaneSql

/** `change` stands between the store and its connections. */
export async function connectionsTo(server: Place, change: Change = (sql) => sql): Promise<Connections> {
  const [lane, reader] = [clientOf(server), clientOf(server)]
  let opening: Promise<unknown> | null = null
  return {
    lane: change(sqlOf(lane)),
    reader: sqlOf(reader),
    made: 2,
    open: async () => void (await (opening ??= Promise.all([lane.connect(), reader.connect()]))),
    close: async () => void (await Promise.all([lane.end(), reader.end()])),
  }
}
