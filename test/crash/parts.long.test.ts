// A run of kills in parts: ended in the middle by a kill, gone on with, and refused where its file does not fit.
import { spawn, spawnSync } from 'node:child_process'
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { noPooler } from '../postgres/pgbouncer.ts'
import { noPostgres } from '../postgres/server.ts'

const program = fileURLToPath(new URL('../../.build/test/crash/main.js', import.meta.url))
/** Of no other run on this machine. */
const SEED = 1_000_000 + process.pid
const PARTS = ['--rounds', '6', '--part', '2', '--seed', `${SEED}`]

let folder = ''
let file = ''

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'terret-parts-'))
  file = join(folder, 'run.jsonl')
})
afterAll(() => rmSync(folder, { recursive: true }))

function crash(...args: readonly string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], { encoding: 'utf8' })
  return { status, said: `${stdout}${stderr}` }
}

/** The seeds of all parts that run now. */
function seedsRun(): readonly number[] {
  return readdirSync('/proc').flatMap((pid) => {
    try {
      const found = /--seed\0(\d+)\0.*--as\0/.exec(readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
      return found ? [Number(found[1])] : []
    } catch {
      return []
    }
  })
}

const linesOf = (path: string): readonly string[] => readFileSync(path, 'utf8').split('\n').filter(Boolean)

describe('kills in parts', () => {
  it('B-CRASH-7: a run that was killed goes on with the parts that are missing, its own parts end with it, and a line that was cut is dropped', async () => {
    writeFileSync(file, '')
    const running = spawn(process.execPath, [program, ...PARTS, '--parallel', '1', '--resume', file], {
      stdio: 'ignore',
    })
    while (linesOf(file).length < 2) await sleep(50)
    running.kill('SIGKILL')
    while (seedsRun().includes(SEED + 1)) await sleep(50)
    const [head, first] = linesOf(file)
    appendFileSync(file, '{"part":2,"seed":1,"rou')
    const { status, said } = crash(...PARTS, '--parallel', '2', '--resume', file)
    expect(said).toMatch(/1 parts are done and 2 left, 2 at once/)
    expect(said).toMatch(/crash: 6 rounds in 3 parts/)
    expect(said).toMatch(/lost 0, doubled 0, once twice 0; violations 0\n$/)
    expect(status).toBe(0)
    const lines = linesOf(file)
    expect(lines.slice(0, 2)).toEqual([head, first])
    expect(lines.slice(1).map((line) => (JSON.parse(line) as { readonly part: number }).part)).toHaveLength(3)
  }, 300_000)

  it('B-CRASH-7: a run whose parts are all there only reports, and a part with a violation fails it with its command', () => {
    const bad = join(folder, 'bad.jsonl')
    const [head = '', ...parts] = linesOf(file)
    const wrong = parts.map((line, i) =>
      i > 0 ? line : JSON.stringify({ ...(JSON.parse(line) as object), lost: 1, violations: ['lost: it'] }),
    )
    writeFileSync(bad, [head, ...wrong, ''].join('\n'))
    const { status, said } = crash(...PARTS, '--resume', bad)
    expect(said).toMatch(/0 left/)
    expect(said).toMatch(
      /again with: npm run crash -- --rounds 2 --seed \d+\nlost 1, doubled 0, once twice 0; violations 1/,
    )
    expect(status).toBe(1)
  })

  it('B-CRASH-7: a file of another commit, of other options, of something else, or with a damaged line is refused', () => {
    const [head = '', first = '', ...rest] = linesOf(file)
    const other = join(folder, 'other.jsonl')
    const refused = (lines: readonly string[], ...more: readonly string[]): string => {
      writeFileSync(other, [...lines, ''].join('\n'))
      const { status, said } = crash(...PARTS, ...more, '--resume', other)
      expect(status).toBe(2)
      return said
    }
    const commit = JSON.stringify({ ...(JSON.parse(head) as object), commit: 'abc' })
    expect(refused([commit, first])).toMatch(/is of commit abc, and this is /)
    expect(refused([head, first], '--seed', '8')).toMatch(/with other options: --rounds 6 --part 2/)
    expect(refused(['{"some":"file"}'])).toMatch(/is not the file of a run of kills/)
    expect(refused([head, first.slice(0, 40), ...rest])).toMatch(/is damaged at line 2\. Take that line out/)
  })

  it.each([
    [['--parallel', '0'], '--parallel must be a whole number of at least 1, not "0".'],
    [['--part', '0'], '--part must be a whole number of at least 1, not "0".'],
    [['--trees', '--parallel', '2'], '--trees and --triggers are run in one process. Leave out --parallel'],
    [['--partition'], '--partition is about a server of its own. Use it with: --store postgres'],
  ])('B-CRASH-7: crash %j is refused', (args, sentence) => {
    const { status, said } = crash(...args)
    expect(said).toContain(sentence)
    expect(status).toBe(2)
  })
})

it.skipIf(noPostgres || noPooler)(
  'B-FAULT-10: kills beside dark networks, locked rows, a pooler and kills of the server',
  () => {
    const weather = ['--store', 'postgres', '--kill-server', '--partition', '--lock', '--pooler']
    const { status, said } = crash(...weather, '--rounds', '4', '--seed', '7')
    expect(said).toMatch(/kills of the server +1\n +networks that were dark +1 .*\n/)
    expect(said).toMatch(/lost 0, doubled 0, once twice 0, all settled\nviolations 0; again with: npm run /)
    expect(status).toBe(0)
  },
  400_000,
)
