// The first example of docs/guide/crash-tests.md.
import { defineTool, scripted } from '../../src/index.ts'
import { crashTest } from '../../src/testing/index.ts'
import { z } from 'zod'

/** What the tools change. Here it is a list; in your test it is a fresh database. */
function freshBank() {
  const charges: { key: string; cents: number }[] = []
  return { charges, look: () => charges.map(({ cents }) => cents) }
}

const report = await crashTest({
  world: freshBank,
  options: (bank) => ({
    model: scripted(({ messages }) =>
      messages.some(({ role }) => role === 'tool')
        ? 'The bill is paid.'
        : { calls: [{ tool: 'charge', args: { cents: 500 } }] },
    ),
    tools: [
      defineTool({
        name: 'charge',
        description: 'Charge the customer',
        input: z.object({ cents: z.number() }),
        effect: 'idempotent', // so it says
        execute: ({ cents }, { key }) => {
          bank.charges.push({ key, cents })
          return 'charged'
        },
      }),
    ],
  }),
  run: 'Pay the bill.',
})
console.log(report.text)
process.exitCode = report.passed ? 0 : 1
