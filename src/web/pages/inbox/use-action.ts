// The behaviour of an inbox button: it sends once, reports the outcome, and ignores presses that were meant for what
// was there before.
import { useRef, useState } from 'react'
import { useActionKey } from '../../data/action-key.ts'
import { ApiError } from '../../data/api.ts'
import type { WirePending } from '../../../server/wire.ts'

/** The second click of a double click must not decide the next call. */
export const SETTLE_MS = 400

export type ActionProps = {
  readonly pending: WirePending
  /** Called with the outcome. */
  readonly onDone: (text: string) => void
  /** Called with the reason why the call cannot be decided any more. */
  readonly onRefused: (text: string) => void
}

type InboxAction<Body> = {
  readonly body: Body
  /** The key makes a retry the same action. */
  readonly send: (body: Body, key: string) => Promise<unknown>
  readonly done: string
}

export function useAction({ onDone, onRefused }: ActionProps) {
  const [busy, setBusy] = useState(false)
  const [trouble, setTrouble] = useState<string | null>(null)
  const since = useRef(performance.now())
  const keyFor = useActionKey()
  const act = async <Body extends object>({ body, send, done }: InboxAction<Body>): Promise<void> => {
    if (busy || performance.now() - since.current < SETTLE_MS) return
    setBusy(true)
    setTrouble(null)
    try {
      await send(body, keyFor(body))
      onDone(done)
    } catch (error) {
      const { message, status } = error instanceof ApiError ? error : { message: String(error), status: 0 }
      // Decided, expired or changed meanwhile: the page must not offer the decision again.
      if (status === 409 || status === 404 || status === 410) onRefused(message)
      else setTrouble(status === 0 ? `${message} Press again: it is the same decision.` : message)
      setBusy(false)
    }
  }
  return { busy, trouble, act }
}
