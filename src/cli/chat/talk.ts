// What a chat is to its commands: types only.
import type { Harness, Pending, SessionHandle } from '../../index.ts'
import type { Calls } from './call.ts'
import type { Terminal } from './terminal-input.ts'
import type { ChatView } from './chat-view.ts'
import type { Kept } from '../state/kept.ts'
import type { Place } from '../state/place.ts'
import type { Setup } from '../state/setup.ts'

export type ChatOptions = {
  readonly place: Place
  readonly harness: Harness
  readonly setup: Setup
  readonly models: readonly string[]
  readonly terminal: Terminal
  readonly by: string
  /** Those of this chat so far, in whatever mode they were made. */
  readonly calls: Calls
  /** Rules that were kept since its harness got its policy. */
  readonly kept: Kept[]
  /** Keeps what was entered. */
  readonly remember: (text: string) => void
}

/** How a chat ended: left, or to be gone on with in another mode. */
export type Ended = { readonly type: 'left'; readonly exit: number } | { readonly type: 'mode'; readonly mode: string }

export interface Talk {
  readonly options: ChatOptions
  readonly view: ChatView
  /** Null until something was said. */
  session: SessionHandle | null
  /** How the chat is to end, once what is being done is done. */
  wish: Ended | null
  /** How to come back, if there is anything to come back to. */
  readonly wayBack: string | null
  /** The exact action. True if not all of it could be shown. */
  shown(pending: Pending, whole?: boolean): Promise<boolean>
  /** Whether this very action was shown here. */
  isShown(pending: Pending): boolean
  /** One question, in place. True if it was decided. */
  ask(pending: Pending): Promise<boolean>
  /** Bound to what was shown. */
  decide(pending: Pending, allow: boolean, why?: string): Promise<void>
  /** Drives what is open, and asks what is asked. */
  goOn(): Promise<void>
  leave(): void
}
