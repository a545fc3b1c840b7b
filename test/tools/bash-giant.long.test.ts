// Hundreds of megabytes of output through the bash tool. What the tool does with less is in bash.test.ts.
import { describe, expect, it, onTestFinished } from 'vitest'
import { Box, noBubblewrap } from './box.ts'

describe.each([
  ['in the sandbox (needs bubblewrap)', noBubblewrap, {}],
  ['without a sandbox', false, { sandbox: { type: 'none', reason: 'bubblewrap (bwrap) is not installed' } }],
] as const)('bash %s', (_name, skipped, options) => {
  it.skipIf(skipped)(
    'B-BASH-9: giant, binary and endless-line output leave the memory flat and the result bounded',
    async () => {
      const box = new Box()
      onTestFinished(() => box.close())
      await box.output({ command: 'yes | head -c 50000000' }, options)
      const before = process.memoryUsage.rss()
      for (const command of [
        'yes | head -c 400000000',
        'head -c 100000000 /dev/zero | tr "\\0" x',
        'head -c 20000000 /dev/urandom',
        'head -c 20000000 /dev/zero',
        'head -c 20000000 /dev/zero | tr "\\0" "\\377" >&2',
      ]) {
        const { content, metadata } = await box.output({ command }, options)
        expect(content.length).toBeLessThan(210_000)
        expect(metadata['exit_code']).toBe(0)
      }
      expect(process.memoryUsage.rss() - before).toBeLessThan(150_000_000)
      for (const text of box.kept.values()) expect(Buffer.byteLength(text)).toBeLessThanOrEqual(8_000_000)
    },
    120_000,
  )
})
