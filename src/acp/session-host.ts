// The types of the program that serves the protocol: it gives sessions by folder. The command line implements them and
// decides which agent, model and limits a folder has. Nothing here depends on the protocol.
import type { PendingCall } from '../sessions/look/pending.ts'
import type { Session } from '../sessions/verbs.ts'

/** `plan`: the agent only reads. `ask`: it asks before changes. `auto`: each tool decides whether it asks. */
export type SessionMode = 'plan' | 'ask' | 'auto'

/** An MCP server that an editor names. It starts only after a person has allowed exactly this server. */
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

/**
 * The file and terminal access that an editor gives to the tools of a folder. Paths are absolute and already checked.
 */
export type EditorIo = {
  readonly readsFiles: boolean
  /** True only if the editor also reads files: a file that was not read is never overwritten. */
  readonly writesFiles: boolean
  readonly hasTerminals: boolean
  /** The text as the editor has it, saved or not. Null: the editor has no such file. */
  readText(path: string): Promise<string | null>
  writeText(path: string, content: string): Promise<void>
  /**
   * Starts a program in a terminal and throws if that fails. The function it returns waits for the end of the program.
   */
  startProgram(program: EditorProgram): Promise<() => Promise<ProgramEnd>>
}
export type EditorProgram = {
  readonly session: string
  /** The id of the call that shows the terminal. Null: no call shows it. */
  readonly toolCallId: string | null
  readonly command: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly signal: AbortSignal
}
/** `exitCode` is null for a program that a signal ended. */
export type ProgramEnd = { readonly exitCode: number | null; readonly output: string }

/** The setup of a folder's agent for the next run. */
export type RunSetup = {
  readonly folder: string
  readonly mode: SessionMode
  readonly servers: readonly NamedServer[]
  readonly doors: EditorIo
}

export type SessionModes = { readonly current: SessionMode; readonly available: readonly SessionMode[] }

export type ListedSession = {
  readonly id: string
  readonly folder: string
  readonly title: string
  /** The time of its last event, in ms. */
  readonly at: number
}

export type SessionHost = {
  /** The person who decides and answers, as the log names them. */
  readonly by: string
  readonly version: string
  /** The real path of the folder. Throws where the agent cannot work there; the error says what to do. */
  folder(path: string): Promise<string>
  modes(folder: string): Promise<SessionModes>
  /** Throws early if every prompt would fail, for example because a key is missing. */
  check(wanted: RunSetup): Promise<void>
  /** Creates a session with this id and stores it. */
  open(id: string, wanted: RunSetup): Promise<Session>
  /** Returns the session, with the agent of this setup. It neither reads nor writes. */
  session(id: string, wanted: RunSetup): Promise<Session>
  /** The pending calls of children that work on while the session itself rests. */
  waitingBelow(id: string, wanted: RunSetup): Promise<readonly PendingCall[]>
  /**
   * Waits while such children work, and drives those that another process left. `news`: the session has events after
   * `seq`. `asks`: a child waits for a person. `done`: no child has work left, or the signal was aborted.
   */
  children(id: string, seq: number, wanted: RunSetup, signal: AbortSignal): Promise<'news' | 'asks' | 'done'>
  /** The folder of a session that an editor may open; null if there is no such session. */
  folderOf(id: string): Promise<string | null>
  /** Lists sessions, newest first, starting at number `from`: those of this folder, or of all folders if it is null. */
  list(folder: string | null, from: number, limit: number): Promise<readonly ListedSession[]>
  /** The current text of a file of this folder, saved or not; null if there is no text to show. */
  textOf(wanted: Pick<RunSetup, 'folder' | 'doors'>, path: string): Promise<string | null>
  /** The changes that a call would make to files as the editor has them. */
  preview(wanted: Pick<RunSetup, 'folder' | 'doors'>, pending: PendingCall): Promise<PendingCall['preview']>
  /** Tells the person something for which the protocol has no message. */
  note(text: string): void
}
