// What the tools of a folder use of an editor: its files as buffers, and its terminals as a place where commands run. A command runs there
// inside the same walls and limits: the terminal starts this very program again, which raises them (terminal-command.ts).
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { EditorDoors } from '../../acp/desk.ts'
import type { FileBuffers } from '../../tools/files/paths.ts'
import { Capture } from '../../tools/shell/capture.ts'
import type { ConfinedOptions } from '../../tools/shell/confined.ts'
import { bornAt, type ChildEnd } from '../../tools/shell/spawn.ts'
import { rootIdOf } from '../../view/ids.ts'
import { END_FILE, ORDER_FILE, type StoredOrder } from './terminal-command.ts'

type Launch = NonNullable<ConfinedOptions['launch']>
export type EditorTools = { readonly buffers?: FileBuffers; readonly launch?: Launch }

export function editorTools(doors: EditorDoors): EditorTools {
  const read = (path: string): Promise<string | null> => doors.readText(path)
  const write = (path: string, text: string): Promise<void> => doors.writeText(path, text)
  return {
    ...(doors.readsFiles ? { buffers: { read, ...(doors.writesFiles ? { write } : {}) } } : {}),
    ...(doors.hasTerminals ? { launch: (order, context) => launch(doors, order, context) } : {}),
  }
}

async function launch(
  doors: EditorDoors,
  order: Parameters<Launch>[0],
  { session, call, clock }: Parameters<Launch>[1],
): Promise<ChildEnd> {
  const begunAt = clock.now()
  const { signal, onChunk, filter, ...plain } = order
  // Only this user can read it, and the program that runs the command takes it away before it starts it.
  const folder = await mkdtemp(join(tmpdir(), 'terret-terminal-'))
  try {
    const owner = { pid: process.pid, born: bornAt(process.pid) }
    const stored: StoredOrder = { ...plain, filter: filter ? Buffer.from(filter).toString('base64') : null, owner }
    await writeFile(join(folder, ORDER_FILE), JSON.stringify(stored), { mode: 0o600 })
    const root = rootIdOf(session)
    const started = await start(doors, {
      session: root,
      toolCallId: root === session ? call : null,
      command: process.execPath,
      args: [process.argv[1] ?? '', 'acp', '--in-terminal', folder],
      cwd: order.cwd,
      signal,
    })
    if (typeof started === 'string')
      return endOf(order, { type: 'unstarted', message: started }, '', clock.now() - begunAt)
    const { exitCode, output } = await started()
    const end = await readEnd(folder)
    if (end === null) {
      // The program that says how a command ended was killed together with its terminal.
      const how = signal.aborted ? ({ type: 'aborted' } as const) : ({ type: 'exited', code: exitCode ?? 137 } as const)
      return endOf(order, how, output, clock.now() - begunAt)
    }
    for (const name of ['stdout', 'stderr'] as const) {
      const { head, tail, whole } = end[name]
      onChunk?.(name, Buffer.from(whole ?? head + tail))
    }
    return end
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** A text says why it was not started. */
async function start(doors: EditorDoors, program: Parameters<EditorDoors['startProgram']>[0]) {
  try {
    return await doors.startProgram(program)
  } catch (error) {
    return `The editor started no terminal: ${error instanceof Error ? error.message : String(error)}`
  }
}

function endOf({ limits }: Parameters<Launch>[0], how: ChildEnd['how'], output: string, durationMs: number): ChildEnd {
  const stdout = new Capture(limits)
  stdout.push(Buffer.from(output))
  return { how, stdout: stdout.finish(), stderr: new Capture(limits).finish(), durationMs }
}

async function readEnd(folder: string): Promise<ChildEnd | null> {
  try {
    return JSON.parse(await readFile(join(folder, END_FILE), 'utf8')) as ChildEnd
  } catch {
    return null
  }
}
