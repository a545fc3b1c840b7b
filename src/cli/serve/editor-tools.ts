// The parts of an editor that the tools of a folder use: its files as buffers, and its terminals to run commands. A
// command in a terminal has the same sandbox and limits: the terminal starts this program again, which sets them up
// (terminal-command.ts).
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { EditorIo } from '../../acp/session-host.ts'
import type { FileBuffers } from '../../tools/files/path-guard.ts'
import { StreamCapture } from '../../tools/shell/capture.ts'
import type { ConfinedOptions } from '../../tools/shell/run-confined.ts'
import { processStartTime, type ChildEnd } from '../../tools/shell/child-process.ts'
import { rootIdOf } from '../../view/ids.ts'
import { END_FILE, ORDER_FILE, type StoredOrder } from './terminal-command.ts'

type Launch = NonNullable<ConfinedOptions['launch']>
export type EditorTools = { readonly buffers?: FileBuffers; readonly launch?: Launch }

export function editorTools(doors: EditorIo): EditorTools {
  const read = (path: string): Promise<string | null> => doors.readText(path)
  const write = (path: string, text: string): Promise<void> => doors.writeText(path, text)
  return {
    ...(doors.readsFiles ? { buffers: { read, ...(doors.writesFiles ? { write } : {}) } } : {}),
    ...(doors.hasTerminals ? { launch: (order, context) => launchInTerminal(doors, order, context) } : {}),
  }
}

async function launchInTerminal(
  doors: EditorIo,
  order: Parameters<Launch>[0],
  { session, call, clock }: Parameters<Launch>[1],
): Promise<ChildEnd> {
  const begunAt = clock.now()
  const { signal, onChunk, filter, ...plain } = order
  // Only this user can read the file, and the program that runs the command removes it before it starts the command.
  const folder = await mkdtemp(join(tmpdir(), 'terret-terminal-'))
  try {
    const owner = { pid: process.pid, born: processStartTime(process.pid) }
    const stored: StoredOrder = { ...plain, filter: filter ? Buffer.from(filter).toString('base64') : null, owner }
    await writeFile(join(folder, ORDER_FILE), JSON.stringify(stored), { mode: 0o600 })
    const root = rootIdOf(session)
    const started = await startTerminal(doors, {
      session: root,
      toolCallId: root === session ? call : null,
      command: process.execPath,
      args: [process.argv[1] ?? '', 'acp', '--in-terminal', folder],
      cwd: order.cwd,
      signal,
    })
    if (typeof started === 'string')
      return endWithOutput(order, { type: 'unstarted', message: started }, '', clock.now() - begunAt)
    const { exitCode, output } = await started()
    const end = await readEnd(folder)
    if (end === null) {
      // The program that reports the end of a command was killed together with its terminal.
      const how = signal.aborted ? ({ type: 'aborted' } as const) : ({ type: 'exited', code: exitCode ?? 137 } as const)
      return endWithOutput(order, how, output, clock.now() - begunAt)
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

/** A text says why the program was not started. */
async function startTerminal(doors: EditorIo, program: Parameters<EditorIo['startProgram']>[0]) {
  try {
    return await doors.startProgram(program)
  } catch (error) {
    return `The editor started no terminal: ${error instanceof Error ? error.message : String(error)}`
  }
}

function endWithOutput(
  { limits }: Parameters<Launch>[0],
  how: ChildEnd['how'],
  output: string,
  durationMs: number,
): ChildEnd {
  const stdout = new StreamCapture(limits)
  stdout.push(Buffer.from(output))
  return { how, stdout: stdout.finish(), stderr: new StreamCapture(limits).finish(), durationMs }
}

async function readEnd(folder: string): Promise<ChildEnd | null> {
  try {
    return JSON.parse(await readFile(join(folder, END_FILE), 'utf8')) as ChildEnd
  } catch {
    return null
  }
}
