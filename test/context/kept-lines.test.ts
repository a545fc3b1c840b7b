// The lines that matter stay in what `full` shows: over a corpus of outputs, for phrases in the middle of any output, and in the
// cases that earlier forms of the router got wrong.
import { describe, expect, it } from 'vitest'
import { type Compressed, compressContent, type ContentHint } from '../../src/index.ts'
import { signalIn } from '../../src/context/juice/signals.ts'
import { logLines } from './corpus.ts'
import { FAILURES, UNUSUAL, withLine } from './phrases.ts'
import { ALL, isTuned, missingIn } from './services.ts'

const keep = (): string => 'a'.repeat(32)

function full(text: string, hint: ContentHint = {}): Promise<Compressed> {
  return compressContent(text, hint, { keep })
}

/** What some program of a user printed: no rule knows it. */
function unknownOutput(lines = 500): string {
  return Array.from(
    { length: lines },
    (_, i) => `stage ${i % 7} item ${i}: copied ${(i * 37) % 900} blocks to node-${i % 5}`,
  ).join('\n')
}

/** The share of parts that stay, and the size of what is shown, over outputs. */
async function measured(outputs: typeof ALL): Promise<{ readonly kept: number; readonly size: number }> {
  let [parts, lost, before, after] = [0, 0, 0, 0]
  for (const output of outputs) {
    const { content, bytesBefore, bytesAfter } = await full(output.text, output.hint)
    parts += output.stays.length
    lost += missingIn(output, content).length
    before += bytesBefore
    after += bytesAfter
  }
  return { kept: (parts - lost) / parts, size: after / before }
}

describe('what full keeps', () => {
  it('B-ROUTER2-1: of the outputs that no rule was tuned on, 95 % of the lines that matter stay in 35 % of the size', async () => {
    expect(ALL.length).toBeGreaterThanOrEqual(60)
    for (const output of ALL) expect(missingIn(output, output.text)).toEqual([])
    const { kept, size } = await measured(ALL.filter((output) => !isTuned(output)))
    expect(kept).toBeGreaterThanOrEqual(0.95)
    expect(size).toBeLessThanOrEqual(0.35)
  })

  it.each(FAILURES)('B-ROUTER2-2: a line of failure in the middle of unknown output stays: %s', async (line) => {
    for (const hint of [{}, { command: './run-it' }]) {
      const made = await full(withLine(unknownOutput(), line), hint)
      expect(made.lossy).toBe(true)
      expect(made.content).toContain(line)
      expect(made.bytesAfter).toBeLessThan(made.bytesBefore * 0.35)
    }
  })

  it('B-ROUTER2-2: in the middle of outputs of real programs all lines of failure stay, and 95 % of unusual lines', async () => {
    const lost: string[] = []
    let [unusual, missed] = [0, 0]
    for (const { name, text, hint, kind } of ALL.filter((output) => output.kind === 'log')) {
      for (const line of [...FAILURES, ...UNUSUAL]) {
        const { content, lossy } = await full(withLine(text, line), { ...hint, kind })
        const isLost = lossy && !content.includes(line)
        if (FAILURES.includes(line)) {
          if (isLost) lost.push(`${name}: ${line}`)
          continue
        }
        unusual += 1
        if (isLost) missed += 1
      }
    }
    expect(lost).toEqual([])
    // Where nearly every line is of its own kind, a line without a signal may be lost.
    expect(missed / unusual).toBeLessThan(0.05)
  })
})
