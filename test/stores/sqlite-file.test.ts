// Where an SQLite store may live, its file permissions, and which SQLite versions it accepts.
import { chmodSync, existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { checkVersion } from '../../src/stores/sqlite/driver.ts'
import { create, outcome } from '../contract/fixture.ts'
import { driverOf, makeFile, makeFolder, open } from './folder.ts'

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)

describe('the file of a store', () => {
  it('B-STORE-100: missing folders are made 0700 and files 0600, whatever the umask', async () => {
    for (const umask of [0o000, 0o022]) {
      const before = process.umask(umask)
      try {
        const file = join(makeFolder(), 'a', 'b', 'terret.db')
        await create(open(file), 's')
        expect([modeOf(dirname(file)), modeOf(dirname(dirname(file)))]).toEqual(['700', '700'])
        expect([file, `${file}-wal`, `${file}-shm`].map(modeOf)).toEqual(['600', '600', '600'])
      } finally {
        process.umask(before)
      }
    }
  })

  it('B-STORE-100: a file that others could read is made private; a folder that was there stays as it is', async () => {
    const folder = join(makeFolder(), 'shared')
    mkdirSync(folder)
    chmodSync(folder, 0o755)
    const file = join(folder, 'terret.db')
    writeFileSync(file, '')
    chmodSync(file, 0o644)
    await create(open(file), 's')
    expect([modeOf(folder), modeOf(file), modeOf(`${file}-wal`)]).toEqual(['755', '600', '600'])
  })

  it('B-STORE-101: a network file system is refused by name', async () => {
    const networks = {
      NFS: 0x6969,
      SMB: 0x517b,
      CIFS: 0xff534d42 | 0,
      SMB2: 0xfe534d42,
      '9P': 0x01021997,
      Ceph: 0x00c36400,
    }
    for (const [name, magic] of Object.entries(networks)) {
      const file = makeFile()
      const store = open(file, { fileSystemOf: () => magic })
      expect(await outcome(create(store, 's'))).toBe('store_unsupported')
      await expect(create(store, 's')).rejects.toThrow(name)
      expect(existsSync(file)).toBe(false)
    }
    expect(await outcome(create(open(makeFile(), { fileSystemOf: () => 0x65735546 }), 's'))).toBe('ok')
  })

  it('B-STORE-102: a path that names no file is refused', async () => {
    expect(await outcome(create(open(':memory:'), 's'))).toBe('invalid_config')
    expect(await outcome(create(open(''), 's'))).toBe('invalid_config')
    expect(await outcome(create(open('/dev/null/terret.db'), 's'))).toBe('io_error')
    // Not a hang, which is what Node's recursive mkdir makes of it.
    expect(await outcome(create(open('/proc/terret/terret.db'), 's'))).toBe('io_error')
    expect(await outcome(create(open(makeFolder()), 's'))).toBe('io_error')
  })

  it('B-STORE-103: an SQLite that is too old is refused, and so is having none', async () => {
    const old = () =>
      driverOf((db) => ({ ...db, prepare: (sql) => db.prepare(sql.replace('sqlite_version()', `'3.45.1'`)) }))
    const store = open(makeFile(), { loadDriver: old })
    expect(await outcome(create(store, 's'))).toBe('store_unsupported')
    await expect(create(store, 's')).rejects.toThrow('3.45.1')
    for (const bad of ['3.51.2', '3.50.9', '2.99.99']) expect(() => checkVersion(bad)).toThrow('too old')
    for (const good of ['3.51.3', '3.51.10', '3.52.0', '4.0.0']) expect(() => checkVersion(good)).not.toThrow()
  })
})
