// An extraction whose process is killed: the next process goes on with it.
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { printedBy } from '../runtime/killed.ts'
import { makeFolder } from '../stores/folder.ts'

describe('an extraction that was killed', () => {
  it.each(['in the model', 'answered', 'written'])(
    'B-MEMORY-69: `kill -9` of an extraction (%s): the next process goes on, and nothing is learned twice',
    async (at) => {
      const folder = makeFolder()
      const child = fileURLToPath(new URL('../../.build/test/memory/child-extract.js', import.meta.url))
      const args = (stop: string, session: string) => [child, folder, stop, session]
      expect(await printedBy(args(at, 's'))).toBe('here\n')
      // A run of another session is enough.
      const [asked, learned, marks, , spent] = (await printedBy(args('', 'other'))).trim().split(' ')
      expect({ learned, marks }).toEqual({ learned: '1', marks: '1' })
      expect(asked).toBe(at === 'in the model' ? '1' : '0')
      // What was paid for and lost is counted as spent.
      expect(Number(spent)).toBe(at === 'in the model' ? 2 : 1)
    },
    60_000,
  )
})
