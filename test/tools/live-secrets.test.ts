// Known secrets in what is shown while a command runs: no line shows what the result does not.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Redactor } from '../../src/runtime/redact/redactor.ts'
import { bashTool } from '../../src/tools/shell/bash.ts'
import { executeTool } from '../../src/tools/core/run-tool.ts'
import { toolContext } from './context.ts'
import { SECRET_SPELLINGS } from './secret-spellings.ts'

const SECRET = 'sk-live-9f8e7d6c5b4a39281706fedcba98Zq'

describe('what is shown while a command runs', () => {
  it.each(SECRET_SPELLINGS)('B-LIVESECRET-1: is what the whole gives, however it is cut: $name', ({ lines }) => {
    const redactor = new Redactor({ TOKEN: SECRET })
    const whole = `before\n${lines(SECRET).join('\n')}\nafter it 12 34\n`
    for (const line of lines(SECRET)) expect(redactor.text(whole)).not.toContain(line)
    const expected = redactor.text(whole)
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: whole.length }), { maxLength: 12 }), (cuts) => {
        const stream = redactor.stream()
        let shown = ''
        const places = [0, ...cuts.toSorted((a, b) => a - b), whole.length]
        for (const [i, at] of places.entries()) shown += stream.push(whole.slice(places[i - 1] ?? 0, at))
        expect(expected.startsWith(shown)).toBe(true)
        expect(shown + stream.end()).toBe(expected)
      }),
      { numRuns: 60 },
    )
    const stream = redactor.stream()
    expect(Array.from(whole, (piece) => stream.push(piece)).join('') + stream.end()).toBe(expected)
  })

  it('B-LIVESECRET-2: waits only for as many rows of a dump as a secret can take', () => {
    const stream = new Redactor({ TOKEN: SECRET }).stream()
    let held = 0
    let most = 0
    for (let i = 0; i < 5_000; i++) {
      const row = ` ${'ab '.repeat(15)}ab\n`
      held += row.length
      held -= stream.push(row).length
      most = Math.max(most, held)
    }
    expect(most).toBeLessThan(1_000)
  })

  it('B-LIVESECRET-3: passes text on as it comes where no secret is known', () => {
    const stream = new Redactor({}).stream()
    const piece = 'sk-live'
    expect(stream.push(piece)).toBe(piece)
    expect(stream.end()).toBe('')
  })

  it('B-LIVESECRET-4: a command shows the same lines while it runs as in its result', async () => {
    const workspace = mkdtempSync(join(tmpdir(), 'terret-live-'))
    const whole = SECRET_SPELLINGS.flatMap(({ name, lines }) => [`# ${name}`, ...lines(SECRET)]).join('\n')
    writeFileSync(join(workspace, 'all.txt'), `${whole}\n`)
    const lines: string[] = []
    let told = ''
    try {
      const sandbox = { type: 'none', reason: 'not under test' } as const
      const tool = bashTool({ workspace, sandbox, attended: true, onLine: ({ line }) => lines.push(line) })
      const context = { ...toolContext({ secrets: { TOKEN: SECRET } }), tell: (text: string) => void (told += text) }
      // In small pieces, so that no chunk holds a whole secret.
      const command = "dd if=all.txt bs=37 2>/dev/null; printf '%s' no-end"
      const done = await executeTool(tool, { command }, context)
      if (done.type === 'undecided') throw new Error('undecided')
      const { stdout } = JSON.parse(done.output.content) as { readonly stdout: string }
      expect(lines.join('\n')).toBe(stdout)
      expect(told).toBe(`${stdout}\n`)
      expect(stdout).toContain('⟦secret:TOKEN⟧')
      for (const { lines: spelt } of SECRET_SPELLINGS)
        for (const line of spelt(SECRET)) expect(told).not.toContain(line)
    } finally {
      rmSync(workspace, { recursive: true, force: true })
    }
  })
})
