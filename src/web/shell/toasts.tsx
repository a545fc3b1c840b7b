// Toasts at the edge of the page: announced politely to screen readers. They disappear by themselves, except errors.
import { useSyncExternalStore } from 'react'
import { Check, TriangleAlert, X } from '../parts/icons.ts'
import { Button } from '../parts/button.tsx'
import { Text } from '../parts/exact-text.tsx'

type Toast = { readonly id: number; readonly text: string; readonly tone: 'ok' | 'bad' }

const SHOWN_MS = 5_000
const SHOWN_MAX = 4

let toasts: readonly Toast[] = []
let lastToastId = 0
const listeners = new Set<() => void>()

export function showToast(text: string, tone: Toast['tone'] = 'ok'): void {
  const one = { id: ++lastToastId, text, tone }
  setToasts([...toasts, one].slice(-SHOWN_MAX))
  if (tone === 'ok') setTimeout(() => dropToast(one.id), SHOWN_MS)
}

/** Shows the outcome of an action that a button started. It never throws. */
export function toastResult(work: Promise<unknown>, done?: string): void {
  void awaitAndToast(work, done)
}

async function awaitAndToast(work: Promise<unknown>, done: string | undefined): Promise<void> {
  try {
    await work
    if (done !== undefined) showToast(done)
  } catch (error) {
    showToast(error instanceof Error ? error.message : String(error), 'bad')
  }
}

function dropToast(id: number): void {
  setToasts(toasts.filter((each) => each.id !== id))
}

function setToasts(next: readonly Toast[]): void {
  toasts = next
  for (const listener of listeners) listener()
}

export function Toasts() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    () => toasts,
  )
  return (
    <div className="toasts" role="status" aria-live="polite">
      {shown.map(({ id, text, tone }) => (
        <div className={`toast ${tone}`} key={id}>
          {tone === 'ok' ? <Check size={16} aria-hidden /> : <TriangleAlert size={16} aria-hidden />}
          <Text text={text} />
          <Button kind="quiet" size="small" label="Dismiss" onPress={() => dropToast(id)}>
            <X size={14} aria-hidden />
          </Button>
        </div>
      ))}
    </div>
  )
}
