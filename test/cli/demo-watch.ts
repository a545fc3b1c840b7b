// Watches the processes of a demo from outside: each one writes down that it began and that it ended. One that was killed by SIGKILL
// never writes the second.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Event } from '../../src/kernel/event.ts'
import { sqlite } from '../../src/stores/sqlite/sqlite.ts'
import { stopsOf } from '../../src/view/node-stops.ts'
import type { Stage } from './stage.ts'

export type Watch = {
  readonly env: Readonly<Record<string, string>>
  /** Workers in the order they began: `resume` and its session. */
  workers(): readonly { readonly pid: number; readonly killed: boolean }[]
}

export function watchProcesses(stage: Stage, more = ''): Watch {
  const file = join(stage.folder, '..', 'processes')
  const script = `import { appendFileSync } from 'node:fs'
const tell = (what) => appendFileSync(${JSON.stringify(file)}, what + ' ' + process.pid + ' ' + process.argv[2] + '\\n')
tell('began')
process.on('exit', () => tell('ended'))
${more}`
  const preload = stage.write('preload.mjs', script)
  return {
    env: { NODE_OPTIONS: `--import=${preload}` },
    workers: () => {
      const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []
      const of = (what: string): readonly number[] =>
        lines
          .filter((line) => line.startsWith(what) && line.endsWith(' resume'))
          .map((line) => Number(line.split(' ')[1]))
      return of('began').map((pid) => ({ pid, killed: !of('ended').includes(pid) }))
    },
  }
}

/** The log of a session of the demo. */
export async function demoLog(stage: Stage, id: string): Promise<readonly Event[]> {
  const store = sqlite(join(stage.folder, 'terret-demo/data/terret.db'))
  try {
    const card = (await store.list({ limit: 100 })).find(({ session }) => session.startsWith(id))
    return (await store.read(card?.session ?? '', 0, 1_000)).events
  } finally {
    await store.close()
  }
}

/** Each node with how often it was begun and how many results it has. */
export function nodesIn(events: readonly Event[]): readonly string[] {
  return stopsOf(events, () => '').map(({ node, call, attempts }) => {
    const results = events.filter((event) => event.type === 'agent.tool_result' && event.call === call)
    return `${node} ${attempts} ${results.length}`
  })
}

/** The words after `terret` in a printed command. */
export function printed(text: string, verb: string): readonly string[] {
  return new RegExp(`terret (${verb} [0-9a-f]{8}.*)$`, 'm').exec(text)?.[1]?.split(' ') ?? []
}

export function lives(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
