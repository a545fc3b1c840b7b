// What a button of the inbox does: sends it once, tells how it went, and takes no press that was meant for what stood there before.
import { useRef, useState } from 'react'
import { useActKey } from '../../data/act-key.ts'
import { ApiError } from '../../data/api.ts'
import type { WirePending } from '../../../server/wire.ts'

/** A second click of a double click must not decide the next one. */
export const SETTLE_MS = 400

export type ActProps = {
  readonly pending: WirePending
  /** Told what was done. */
  readonly onDone: (text: string) => void
  /** Told why it cannot be decided any more. */
  readonly onRefused: (text: string) => void
}

type Act<Body> = {
  readonly body: Body
  /** With the key that makes a second try the same act. */
  readonly send: (body: Body, key: string) => Promise<unknown>
  readonly done: string
}

export function useAct({ onDone, onRefused }: ActProps) {
  const [busy, setBusy] = useState(false)
  const [trouble, setTrouble] = useState<string | null>(null)
  const since = useRef(performance.now())
  const keyFor = useActKey()
  const act = async <Body extends object>({ body, send, done }: Act<Body>): Promise<void> => {
    if (busy || performance.now() - since.current < SETTLE_MS) return
    setBusy(true)
    setTrouble(null)
    try {
      await send(body, keyFor(body))
      onDone(done)
    } catch (error) {
      const { message, status } = error instanceof ApiError ? error : { message: String(error), status: 0 }
      // Decided, expired or changed meanwhile: it is not to be decided again.
      if (status === 409 || status === 404 || status === 410) onRefused(message)
      else setTrouble(status === 0 ? `${message} Press again: it is the same decision.` : message)
      setBusy(false)
    }
  }
  return { busy, trouble, act }
}
