// Memory and SQLite side by side: whatever is asked of both, in any order and in any grouping, both answer the same.
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'vitest'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { runs } from '../runs.ts'
import { expectSameAnswers } from './model.ts'

describe('memory and SQLite', () => {
  it('B-STORE-120: give the same answers to the same questions', async () => {
    const parent = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()
    await expectSameAnswers(async (clock) => {
      const folder = mkdtempSync(join(parent, 'terret-model-'))
      const store = sqlite(join(folder, 'terret.db'), { clock })
      const end = async () => {
        await store.close()
        rmSync(folder, { recursive: true, force: true })
      }
      return { store, end }
    }, runs(100))
  }, 120_000)
})
