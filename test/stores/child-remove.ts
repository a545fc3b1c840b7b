// A process that removes a session and kills itself before the nth statement that writes, or right after the last. It says how
// many there were if it lives. Run by sqlite-removal.test.ts.
import { systemClock } from '../../src/stores/plan/system-clock.ts'
import { type Driver, loadDriver, type Statement } from '../../src/stores/sqlite/driver.ts'
import { realFileSystemOf } from '../../src/stores/sqlite/database-file.ts'
import { SqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'

const [file = '', session = '', at = '0'] = process.argv.slice(2)
let armed = false
let written = 0

/** Reads are let through: they leave nothing behind. */
function counting(sql: string, real: Statement): Statement {
  if (!/^(INSERT|UPDATE|DELETE|COMMIT)/.test(sql)) return real
  const count = (): void => {
    if (!armed) return
    written += 1
    if (written === Number(at)) process.kill(process.pid, 'SIGKILL')
  }
  const before = <A extends unknown[], R>(call: (...values: A) => R): ((...values: A) => R) => {
    return (...values) => {
      count()
      const result = call(...values)
      // COMMIT is the last statement: a process killed right after it has removed the session without reporting so.
      if (sql === 'COMMIT') count()
      return result
    }
  }
  return { run: before((...v) => real.run(...v)), get: before((...v) => real.get(...v)), all: (...v) => real.all(...v) }
}

function spying(): Driver {
  const real = loadDriver()
  return function (this: unknown, path: string) {
    const db = new real(path)
    return {
      get isTransaction() {
        return db.isTransaction
      },
      exec: (sql: string) => db.exec(sql),
      prepare: (sql: string) => counting(sql, db.prepare(sql)),
      close: () => db.close(),
    }
  } as unknown as Driver
}

const store = new SqliteStore(file, { clock: systemClock, loadDriver: spying, fileSystemOf: realFileSystemOf })
await store.removals(1)
armed = true
await store.remove(session, 'child')
armed = false
process.send?.(written)
await store.close()
process.disconnect()
