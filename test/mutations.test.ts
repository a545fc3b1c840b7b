// The mechanical mutations of the simulator: which places of a source they change, and what the command refuses.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { mutationsOf } from '../sim/mutations.ts'
import { SURVIVORS } from '../sim/survivors.ts'

const SOURCE = `import { a } from './a.ts'
export function act(n: number, on: boolean): void {
  if (n < 3 && !on) {
    return
  }
  a(\`\${n === 1}\`)
  throw new Error(n > 1 ? 'x' : 'y')
}
`

describe('mechanical mutations', () => {
  it('B-SIM-90: each changes one place, and none is of what is said to people', () => {
    const all = mutationsOf('a.ts', SOURCE)
    expect(all.map(({ name }) => name)).toEqual([
      'a.ts:3:7 never',
      'a.ts:3:13 && to ||',
      'a.ts:3:9 < to <=',
      'a.ts:3:11 one more',
      'a.ts:3:16 without its !',
      'a.ts:4:5 goes on',
      'a.ts:6:3 left out',
    ])
    expect(all.map(({ becomes }) => becomes)).toEqual([
      'if (false) {',
      'if (n < 3 || !on) {',
      'if (n <= 3 && !on) {',
      'if (n < (3 + 1) && !on) {',
      'if (n < 3 && on) {',
      ';{}',
      ';{}',
    ])
  })

  it.each(SURVIVORS.map((survivor) => [survivor.becomes, survivor] as const))(
    'B-SIM-91: what survives for a reason still fits its source: %s',
    (_, { file, was, becomes }) => {
      const all = mutationsOf(file, readFileSync(file, 'utf8'))
      expect(all.some((mutation) => mutation.was === was && mutation.becomes === becomes)).toBe(true)
    },
  )

  it.each([
    ['a number that is none', ['--mutate', 'many'], '--mutate must be a whole number of at least 1'],
    ['none at once', ['--mutate', '1', '--parallel', '0'], '--parallel must be a whole number of at least 1'],
    ['a name that nothing has', ['--mutate', '1', '--only', 'no such place'], 'No mutation has "no such place"'],
  ])('B-SIM-90: %s is refused with a sentence', (_, args, sentence) => {
    const { status, stderr } = spawnSync(process.execPath, ['.build/sim/main.js', ...args], { encoding: 'utf8' })
    expect([status, stderr.split('\n')[0]]).toEqual([2, expect.stringContaining(sentence)])
  })

  it('B-SIM-92: a file of another source is refused', () => {
    const folder = mkdtempSync(join(tmpdir(), 'terret-mutate-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'results')
    writeFileSync(file, 'of another source\n')
    const args = ['.build/sim/main.js', '--mutate', '1', '--resume', file]
    const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
    expect([status, stderr]).toEqual([2, expect.stringContaining('has results of another source')])
  })
})
