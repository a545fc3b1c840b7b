// Short news at the edge of the page: said politely to those who do not see it, and gone by itself unless it is about trouble.
import { useSyncExternalStore } from 'react'
import { Check, TriangleAlert, X } from '../parts/icons.ts'
import { Button } from '../parts/button.tsx'
import { Text } from '../parts/text.tsx'

type Toast = { readonly id: number; readonly text: string; readonly tone: 'ok' | 'bad' }

const SHOWN_MS = 5_000
const SHOWN_MAX = 4

let toasts: readonly Toast[] = []
let made = 0
const listeners = new Set<() => void>()

export function toast(text: string, tone: Toast['tone'] = 'ok'): void {
  const one = { id: ++made, text, tone }
  set([...toasts, one].slice(-SHOWN_MAX))
  if (tone === 'ok') setTimeout(() => drop(one.id), SHOWN_MS)
}

/** For what a button began: its failure is said, and nothing is thrown. */
export function tell(work: Promise<unknown>, done?: string): void {
  void told(work, done)
}

async function told(work: Promise<unknown>, done: string | undefined): Promise<void> {
  try {
    await work
    if (done !== undefined) toast(done)
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error), 'bad')
  }
}

function drop(id: number): void {
  set(toasts.filter((each) => each.id !== id))
}

function set(next: readonly Toast[]): void {
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
          <Button kind="quiet" size="small" label="Dismiss" onPress={() => drop(id)}>
            <X size={14} aria-hidden />
          </Button>
        </div>
      ))}
    </div>
  )
}
