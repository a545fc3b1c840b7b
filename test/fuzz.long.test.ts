// The fuzz targets, a few hundred cases each, and that they find what is broken. `npm run fuzz` is the same with many more.
import { spawnSync } from 'node:child_process'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readShell } from '../src/tools/shell/risk/read-shell.ts'
import { command } from './fuzz/command.ts'
import { paths } from './fuzz/paths.ts'
import { ran } from './fuzz/ran.ts'
import { hasTmux, screens } from './fuzz/screen.ts'
import { drawn } from './fuzz/tape.ts'
import { run, type Target } from './fuzz/target.ts'
import { targets } from './fuzz/targets.ts'

const faults = targets.flatMap(({ name, planted }) =>
  planted.map((fault) => [`${name}: ${fault.name}`, fault] as const),
)

/** They ask a real shell, disk and terminal, so a case costs more. */
const LIVE: ReadonlySet<string> = new Set(['ran', 'paths', 'screen'])
const SLOW: ReadonlySet<string> = new Set(['ran', 'screen'])

async function holds({ open }: Target, runs: number): Promise<void> {
  expect(await run(open(), { runs, seed: 20_260 })).toEqual({ cases: runs, found: null })
}

describe('the fuzzer', () => {
  it('B-FUZZ-5: of what the policy lets run, a real bash runs nothing that a rule holds back, however it is spelled', () =>
    holds(ran, 300))

  it('B-FUZZ-6: rules and roots hold for where a path leads on a real disk, whatever links are on the way', () =>
    holds(paths, 500))

  it.skipIf(!hasTmux)(
    'B-FUZZ-7: in a real terminal no text that is printed leaves its row, changes another one, the title or the screen',
    () => holds(screens, 25),
  )

  it.each(targets.filter(({ name }) => !LIVE.has(name)).map((target) => [target.name, target] as const))(
    'B-FUZZ-1: finds nothing in a few hundred cases of %s',
    async (_name, target) => {
      expect(await run(target.open(), { runs: 500, seed: 20_260 })).toEqual({ cases: 500, found: null })
    },
  )

  it.each(faults)('B-FUZZ-2: finds the planted fault: %s', async (_name, fault) => {
    expect((await run(fault.open(), { runs: 2_000, seed: 6, first: true })).found).not.toBeNull()
  })

  it('B-FUZZ-3: a finding is found again by its seed and path, as the very same case', async () => {
    for (const { name, planted } of targets) {
      const [fault] = planted
      // A smaller case is looked for where that is cheap.
      const { found } = await run(fault?.open() ?? fail(), { runs: 2_000, seed: 7, first: SLOW.has(name) })
      if (found === null) throw new Error('nothing was found')
      const again = await run(fault?.open() ?? fail(), { runs: 1, seed: found.seed, path: found.path })
      expect(again.found?.counterexample).toBe(found.counterexample)
    }
  })

  it('B-FUZZ-4: what counts as a command of plain words is split into just these words by a real bash', async () => {
    const soup = fc
      .array(fc.constantFrom(...Array.from(`ab=:^%@+,./-'" \t~#!*?[]{}$\\;&|<>()\n`)), { maxLength: 12 })
      .map((all) => all.join(''))
    const texts = fc.sample(
      fc.oneof(
        drawn(command).map(({ text }) => text),
        soup,
      ),
      { numRuns: 6_000, seed: 8 },
    )
    const plain: { text: string; words: readonly string[] }[] = []
    for (const text of texts) {
      const reading = await readShell(text, { mentions: true })
      if (reading.plain) plain.push({ text, words: reading.runs[0]?.words.map((word) => word.text) ?? [] })
    }
    expect(plain.length).toBeGreaterThan(500)
    // The words of each command end with a byte that none of them holds. `set` runs none of them.
    const script = plain.map(({ text }) => `set -- ${text}; printf '%s\\1' "$@"; printf '\\2'`)
    const { stdout, stderr } = spawnSync('bash', ['-c', script.join('\n')], { encoding: 'utf8' })
    const split = stdout
      .split('\u0002')
      .slice(0, -1)
      .map((one) => one.split('\u0001').slice(0, -1))
    expect([stderr, split]).toEqual(['', plain.map(({ words }) => words)])
  })
})

function fail(): never {
  throw new Error('a target without a planted fault')
}
