// What the tests of the report workflow share: a folder of documents, a harness with both graphs on it, and the report as it was
// written. Nothing is asserted here.
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'
import {
  reportAgents,
  reportGraph,
  type ReportState,
  reportWithModelGraph,
} from '../../src/cli/demo/report/report-graph.ts'
import type { HarnessOptions, Result, SessionHandle } from '../../src/index.ts'
import { eventsIn, ofType, pointIn, withGraphs } from './stage.ts'

export const DOCUMENTS = {
  'tides.txt': `Tides

The moon raises the tides of the sea. Twice a day the water comes and goes, and
no harbour may forget it. A spring tide comes with the full moon and with the
new moon alike.
`,
  'lamps.md': `# Lamps

- A lamp must be trimmed every evening before the tide turns.
- The keeper of the lamp sleeps by day. Nobody else may touch the wick.
`,
  'sheep.txt': 'Sheep\n\nSheep graze on the hill and care for nothing that happens below it.\n',
} as const

export const INPUT = { topic: 'The harbour: tides and lamps', documents: 'docs', out: 'out/report.md' } as const

export type Bench = {
  readonly folder: string
  readonly harness: ReturnType<typeof withGraphs>
  write(path: string, content: string | Uint8Array): void
  read(path: string): string
  /** The report by fixed rules, to its first rest. */
  report(
    input?: Parameters<SessionHandle['run']>[0],
  ): Promise<{ readonly result: Result; readonly session: SessionHandle }>
  /** Says yes to what waits, and goes on. */
  allowed(session: SessionHandle): Promise<Result>
}

export function openBench(options: Partial<HarnessOptions> = {}, documents: object = DOCUMENTS): Bench {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'terret-report-')))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const write: Bench['write'] = (path, content) => {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), content)
  }
  for (const [name, text] of Object.entries(documents)) write(`docs/${name}`, String(text))
  const graphs = [reportGraph({ root: folder }), reportWithModelGraph({ root: folder })]
  const harness = withGraphs(graphs, { subagents: reportAgents, ...options })
  return {
    folder,
    harness,
    write,
    read: (path) => readFileSync(join(folder, path), 'utf8'),
    report: async (input = INPUT) => {
      const result = await harness.run(input, { agent: 'report' })
      return { result, session: harness.session(result.sessionId) }
    },
    allowed: async (session) => {
      const { pending } = await session.run()
      for (const each of pending) await session.decide({ ...each, allow: true, by: 'ana' })
      return session.run()
    },
  }
}

/** The lines of a report that quote, taken apart. */
export function quotesIn(
  report: string,
): readonly { readonly quote: string; readonly file: string; readonly line: number }[] {
  return report.split('\n').flatMap((each) => {
    const [, quote = '', file = '', line = ''] = /^> (.*) \[(.+):(\d+)\]$/.exec(each) ?? []
    return quote === '' ? [] : [{ quote, file, line: Number(line) }]
  })
}

export async function stateOf(session: SessionHandle): Promise<ReportState> {
  return (await pointIn(session)).state as unknown as ReportState
}

/** How each call ended, in order. */
export async function endsIn(session: SessionHandle): Promise<readonly string[]> {
  const events = await eventsIn(session)
  const names = new Map(
    ofType(events, 'agent.message').flatMap(({ seq, calls }) => calls.map(({ tool }, i) => [`${seq}.${i}`, tool])),
  )
  return ofType(events, 'agent.tool_result').map(({ call, status }) => `${names.get(call)} ${status}`)
}
