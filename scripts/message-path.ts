// Counts the files and functions of src that one `harness.run(input)` with one tool call passes, by V8's own coverage, and prints
// them: `npm run rooms -- --message`. Nothing fails on these figures: people read them.
import { mkdtempSync, rmSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Store } from '../src/ports/store.ts'
import { defineTool, Harness, memory, scripted, sqlite } from '../src/index.ts'

type PassedFile = { readonly path: string; readonly functions: readonly string[] }

export async function printMessagePath(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'terret-rooms-'))
  try {
    const inMemory = await filesOfOneRun(memory())
    const inFile = await filesOfOneRun(sqlite(join(folder, 'sessions.db')))
    for (const { path, functions } of inFile) console.log(`${path}: ${functions.join(' ')}`)
    printCount('memory', inMemory)
    printCount('SQLite', inFile)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The first run loads code and opens the store, so the second one is counted. */
async function filesOfOneRun(store: Store): Promise<readonly PassedFile[]> {
  const look = defineTool({
    name: 'look',
    description: 'Looks a word up',
    input: { type: 'object', properties: { word: { type: 'string' } } },
    effect: 'read',
    execute: () => 'found',
  })
  const model = scripted((request) =>
    request.messages.some(({ role }) => role === 'tool') ? 'Done.' : { calls: [{ tool: 'look', args: { word: 'a' } }] },
  )
  const harness = new Harness({ model, tools: [look], store })
  const inspector = new Session()
  inspector.connect()
  try {
    await harness.run('Look it up.')
    await inspector.post('Profiler.enable')
    await inspector.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
    const { status } = await harness.run('Look it up.')
    const { result } = await inspector.post('Profiler.takePreciseCoverage')
    if (status !== 'completed') throw new Error(`The counted run ended as ${status}.`)
    return result.flatMap(({ url, functions }) => {
      const path = /\/\.build\/(src\/.*)\.js$/.exec(url)?.[1]
      const called = functions.filter(({ functionName, ranges }) => functionName !== '' && (ranges[0]?.count ?? 0) > 0)
      if (path === undefined || called.length === 0) return []
      return [{ path: `${path}.ts`, functions: [...new Set(called.map(({ functionName }) => functionName))] }]
    })
  } finally {
    inspector.disconnect()
    await harness.close()
    await store.close()
  }
}

function printCount(store: string, files: readonly PassedFile[]): void {
  const functions = files.reduce((sum, each) => sum + each.functions.length, 0)
  console.log(`one message with one tool call, ${store}: ${files.length} files, ${functions} functions`)
}
