// A rebuilt disk with a SQLite store on it.
import { join } from 'node:path'
import { readSqlite } from '../../src/stores/sqlite/sqlite-move.ts'
import { loadDriver } from '../../src/stores/sqlite/driver.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import type { Ground } from './cut.ts'
import { DATABASE, DISK } from './record-sqlite.ts'

export const sqliteGround: Ground = {
  // It is shared memory in the form of a file, and written through a mapping.
  leavesOut: (path) => path.endsWith('-shm'),
  isThere: (tree) => tree.has(DATABASE),
  opening: (folder) => {
    const file = join(folder, DATABASE)
    return {
      open: async () => {
        const store = sqlite(file)
        await store.open()
        return { store, reader: () => readSqlite(file) }
      },
      openBackup: (backup) => sqlite(backup),
      backups: join(folder, DISK, 'backups'),
      archives: join(folder, DISK, 'archive'),
      oracle: join(folder, 'oracle.jsonl'),
      checkDatabase: async () => checkFile(file),
    }
  },
  end: async () => {},
}

function checkFile(file: string): readonly string[] {
  const Driver = loadDriver()
  const db = new Driver(file)
  try {
    const rows = db.prepare('PRAGMA integrity_check').all() as readonly Record<string, unknown>[]
    const said = rows.flatMap((row) => Object.values(row).map(String))
    return said.length === 1 && said[0] === 'ok' ? [] : said.map((text) => `integrity: ${text}`)
  } finally {
    db.close()
  }
}
