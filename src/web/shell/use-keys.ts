// One listener for all keys. Pages say what the commands of the list mean there; the last page that says so counts.
import { useEffect, useRef } from 'react'
import { type Command, KEYS, keyName } from './keys.ts'

type Acts = Partial<Readonly<Record<Command, () => void>>>

const SEQUENCE_MS = 1_000
const stack: { current: Acts }[] = []
let before = ''
let beforeAt = 0

/** While the page that calls it is shown. */
export function useKeys(acts: Acts): void {
  const latest = useRef(acts)
  latest.current = acts
  useEffect(() => {
    stack.push(latest)
    if (stack.length === 1) window.addEventListener('keydown', pressed)
    return () => {
      stack.splice(stack.indexOf(latest), 1)
      if (stack.length === 0) window.removeEventListener('keydown', pressed)
    }
  }, [])
}

export function run(command: Command): boolean {
  const act = stack.findLast(({ current }) => current[command])?.current[command]
  act?.()
  return act !== undefined
}

function pressed(event: KeyboardEvent): void {
  // A script presses no keys here.
  if (!event.isTrusted || event.defaultPrevented || event.altKey || event.isComposing) return
  const name = keyName(event)
  const isHeld = name.startsWith('Ctrl+')
  if (!isHeld && (isWriting(event.target) || document.querySelector('dialog[open]') !== null)) return
  const now = performance.now()
  const sequence = now - beforeAt < SEQUENCE_MS && before !== '' ? `${before} ${name}` : name
  const found = KEYS.filter(({ keys }) => keys === sequence)
  // Where the focus is on something that is pressed with Enter, Enter is its own.
  if (name === 'Enter' && isPressable(event.target)) return
  const isDone = found.some(({ command }) => run(command))
  if (isDone) event.preventDefault()
  before = isDone || !KEYS.some(({ keys }) => keys.startsWith(`${name} `)) ? '' : name
  beforeAt = now
}

function isWriting(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
}

function isPressable(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && /^(A|BUTTON|SUMMARY)$/.test(target.tagName)
}
