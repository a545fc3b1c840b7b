// The chat as its commands see it: types alone.
import type { Pending, Session, Sessions } from '../../index.ts'
import type { CommandContext } from '../state/command-context.ts'
import type { Mode } from '../state/config.ts'
import type { FolderSetup } from '../state/folder-setup.ts'
import type { KeptRule } from '../state/kept-rules.ts'
import type { OwnCommand } from '../state/own-commands.ts'
import type { BackgroundCommands } from './background-commands.ts'
import type { ChatCalls } from './chat-calls.ts'
import type { ChatView } from './chat-view.ts'
import type { ChildWatcher } from './child-watcher.ts'
import type { Terminal } from './terminal-input.ts'

export type ChatServer = {
  /** The id of the event of a message that was sent with this id. */
  readonly eventIdOf: (id: string) => string
  /** Ends requests that wait for a server that is away. */
  readonly hurry: () => void
}

export type ChatOptions = {
  readonly place: CommandContext
  /** Of a harness here, or of a server. */
  readonly sessions: Sessions
  /** The server that drives, whose setup counts. Null: this process drives. */
  readonly server: ChatServer | null
  /** The mode changes while the chat goes on. */
  readonly setup: Omit<FolderSetup, 'mode'> & { mode: Mode }
  readonly models: readonly string[]
  /** The agent of a new session. Absent: the default agent of the folder. */
  readonly agent?: string
  /** How many tokens the models take; infinity if that is unknown. */
  readonly window: number
  readonly terminal: Terminal
  readonly by: string
  /** The calls of this chat so far, in all modes. */
  readonly calls: ChatCalls
  /** The commands of this process, in all modes. */
  readonly background: BackgroundCommands
  /** Input that was entered and not read yet, in all modes. */
  readonly typed: string[]
  /** What commands of the person printed, in all modes. It joins the next message. */
  readonly told: string[]
  /** Rules saved since the harness got its policy. */
  readonly kept: KeptRule[]
  /** The person's own commands. */
  readonly own: readonly OwnCommand[]
  /** Adds an input to the history. */
  readonly remember: (text: string) => void
}

/** How a chat ended: the person left, or it continues with another mode, other models or another session. */
export type ChatEnd =
  | { readonly type: 'left'; readonly exit: number }
  | {
      readonly type: 'again'
      readonly mode?: string
      readonly models?: readonly string[]
      /** Null: a new session. Absent: the same one. */
      readonly session?: string | null
      /** What the person is told. */
      readonly said?: string
    }

export interface ChatControl {
  readonly options: ChatOptions
  readonly view: ChatView
  /** Null until the first message. */
  session: Session | null
  /** Returns the session, and opens one if there is none yet. */
  ensureSession(): Promise<Session>
  /** Sends a message. `entered`: what the person typed, where the text is that of a file. */
  say(text: string, entered?: string): Promise<void>
  /** How the chat ends after the current command; null: it goes on. */
  requestedEnd: ChatEnd | null
  /** The command that continues this session, if there is one. */
  readonly wayBack: string | null
  /** Shows the exact action. True if a part of it could not be shown. */
  showPending(pending: Pending, whole?: boolean): Promise<boolean>
  /** Returns a function that says whether exactly this action had been shown here at the time of this call. */
  noteShown(): (pending: Pending) => boolean
  /** Asks one question. True if the call was decided. */
  ask(pending: Pending): Promise<boolean>
  /** Decides exactly the action that was shown. */
  decide(pending: Pending, allow: boolean, why?: string): Promise<void>
  /** Continues open work and asks its questions. */
  goOn(): Promise<void>
  readonly children: ChildWatcher
  /** Checks the children now. */
  look(): Promise<void>
  /** Goes on after a child was answered, unless the session works already. */
  goOnIfIdle(): Promise<void>
  leave(): void
}
