// What the protocol needs of the program that serves it: sessions by folder, as types. The command line has one; it decides which agent,
// model and limits a folder has. Nothing of the protocol is here.
import type { PendingCall } from '../sessions/look/pending.ts'
import type { Session } from '../sessions/verbs.ts'

/** `plan`: only look. `ask`: ask before changes. `auto`: as each tool itself asks. */
export type Mode = 'plan' | 'ask' | 'auto'

/** An MCP server that an editor names. It is started only after a person has allowed exactly this. */
export type NamedServer =
  | {
      readonly type: 'stdio'
      readonly name: string
      readonly command: string
      readonly args: readonly string[]
      readonly env: Readonly<Record<string, string>>
    }
  | {
      readonly type: 'http' | 'sse'
      readonly name: string
      readonly url: string
      readonly headers: Readonly<Record<string, string>>
    }

/** What an editor does for the tools of a folder. Paths are absolute, and were checked. */
export type EditorDoors = {
  readonly readsFiles: boolean
  /** Only where it reads them too: nothing is written over a text that was not seen. */
  readonly writesFiles: boolean
  readonly hasTerminals: boolean
  /** As the editor has it, saved or not. Null: it has no such file. */
  readText(path: string): Promise<string | null>
  writeText(path: string, content: string): Promise<void>
  /** Starts a program in a terminal. Throws if it was not started; what it gives waits for the end. */
  startProgram(program: Program): Promise<() => Promise<ProgramEnd>>
}
export type Program = {
  readonly session: string
  /** The call that shows the terminal. Null: none does. */
  readonly toolCallId: string | null
  readonly command: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly signal: AbortSignal
}
/** `exitCode` is null for what a signal ended. */
export type ProgramEnd = { readonly exitCode: number | null; readonly output: string }

/** How the agent of a folder is set up for the next run. */
export type Wanted = {
  readonly folder: string
  readonly mode: Mode
  readonly servers: readonly NamedServer[]
  readonly doors: EditorDoors
}

export type Modes = { readonly current: Mode; readonly available: readonly Mode[] }

export type Listed = {
  readonly id: string
  readonly folder: string
  readonly title: string
  /** Of its last event, in ms. */
  readonly at: number
}

export type Desk = {
  /** Who decides and answers, as the log will name them. */
  readonly by: string
  readonly version: string
  /** The folder as it is on disk. Throws where the agent cannot work there, and says what to do. */
  folder(path: string): Promise<string>
  modes(folder: string): Promise<Modes>
  /** Throws now what would make every prompt fail, such as a missing key. */
  check(wanted: Wanted): Promise<void>
  /** A new session of this id, on disk. */
  open(id: string, wanted: Wanted): Promise<Session>
  /** The session, with the agent that is wanted. Nothing is read or written. */
  session(id: string, wanted: Wanted): Promise<Session>
  /** What children wait for that work on while the session itself rests. */
  waitingBelow(id: string, wanted: Wanted): Promise<readonly PendingCall[]>
  /**
   * Waits while such children work, and drives those that another process left. `news`: the session has events after `seq`. `asks`: a
   * child waits for a person. `done`: none of them has anything to do, or the signal was aborted.
   */
  children(id: string, seq: number, wanted: Wanted, signal: AbortSignal): Promise<'news' | 'asks' | 'done'>
  /** The folder of a session that an editor may open; null if there is no such session. */
  folderOf(id: string): Promise<string | null>
  /** Newest first, from the `from`-th on: of this folder, or of all. */
  list(folder: string | null, from: number, limit: number): Promise<readonly Listed[]>
  /** The text of a file of this folder as it is now, saved or not; null if there is none that can be shown. */
  textOf(wanted: Pick<Wanted, 'folder' | 'doors'>, path: string): Promise<string | null>
  /** What a call would change in files as the editor has them. */
  preview(wanted: Pick<Wanted, 'folder' | 'doors'>, pending: PendingCall): Promise<PendingCall['preview']>
  /** What a person should know and no message of the protocol says. */
  note(text: string): void
}
