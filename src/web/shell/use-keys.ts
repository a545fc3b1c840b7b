// One listener for all keys. Pages register what the commands mean there; the last page registered wins.
import { useEffect, useRef } from 'react'
import { type KeyCommand, KEYS, keyName } from './key-commands.ts'

type KeyActions = Partial<Readonly<Record<KeyCommand, () => void>>>

const SEQUENCE_MS = 1_000
const pageActions: { current: KeyActions }[] = []
let lastKey = ''
let lastKeyAt = 0

/** Active while the calling component is shown. */
export function useKeys(acts: KeyActions): void {
  const latest = useRef(acts)
  latest.current = acts
  useEffect(() => {
    pageActions.push(latest)
    if (pageActions.length === 1) window.addEventListener('keydown', handleKeyDown)
    return () => {
      pageActions.splice(pageActions.indexOf(latest), 1)
      if (pageActions.length === 0) window.removeEventListener('keydown', handleKeyDown)
    }
  }, [])
}

export function runKeyCommand(command: KeyCommand): boolean {
  const act = pageActions.findLast(({ current }) => current[command])?.current[command]
  act?.()
  return act !== undefined
}

function handleKeyDown(event: KeyboardEvent): void {
  // Events made by scripts are ignored.
  if (!event.isTrusted || event.defaultPrevented || event.altKey || event.isComposing) return
  const name = keyName(event)
  const isHeld = name.startsWith('Ctrl+')
  if (!isHeld && (isWriting(event.target) || document.querySelector('dialog[open]') !== null)) return
  const now = performance.now()
  const sequence = now - lastKeyAt < SEQUENCE_MS && lastKey !== '' ? `${lastKey} ${name}` : name
  const found = KEYS.filter(({ keys }) => keys === sequence)
  // Enter on a focused link or button belongs to that element.
  if (name === 'Enter' && isPressable(event.target)) return
  const isDone = found.some(({ command }) => runKeyCommand(command))
  if (isDone) event.preventDefault()
  lastKey = isDone || !KEYS.some(({ keys }) => keys.startsWith(`${name} `)) ? '' : name
  lastKeyAt = now
}

function isWriting(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
}

function isPressable(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && /^(A|BUTTON|SUMMARY)$/.test(target.tagName)
}
