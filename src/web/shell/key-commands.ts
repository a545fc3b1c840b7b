// The keyboard commands of the inspector, as data: the key, the action, and where it applies. The help shows this list,
// and one listener acts on it. Allow and Deny deliberately have no key: they need the focus.

export type KeyScope = 'anywhere' | 'list' | 'session'
export type KeyCommand =
  | 'go.sessions'
  | 'go.inbox'
  | 'go.agents'
  | 'go.schedules'
  | 'go.triggers'
  | 'go.evals'
  | 'go.health'
  | 'go.settings'
  | 'palette'
  | 'help'
  | 'search'
  | 'next'
  | 'previous'
  | 'open'
  | 'event.next'
  | 'event.previous'
  | 'turn.next'
  | 'turn.previous'
  | 'live'
  | 'view.timeline'
  | 'view.waterfall'
  | 'view.graph'
  | 'view.context'
  | 'view.raw'
  | 'fork'
  | 'mark'
  | 'new'
  | 'children'
  | 'copy'
  | 'send'

export type KeyRow = {
  /** A sequence of keys such as `g s`, or one key with a modifier such as `Ctrl+k`. */
  readonly keys: string
  readonly command: KeyCommand
  readonly does: string
  readonly where: KeyScope
}

export const KEYS: readonly KeyRow[] = [
  { keys: 'Ctrl+k', command: 'palette', does: 'Find anything', where: 'anywhere' },
  { keys: '?', command: 'help', does: 'Show these keys', where: 'anywhere' },
  { keys: '/', command: 'search', does: 'Search', where: 'anywhere' },
  { keys: 'g s', command: 'go.sessions', does: 'Go to Sessions', where: 'anywhere' },
  { keys: 'g i', command: 'go.inbox', does: 'Go to Inbox', where: 'anywhere' },
  { keys: 'g a', command: 'go.agents', does: 'Go to Agents', where: 'anywhere' },
  { keys: 'g c', command: 'go.schedules', does: 'Go to Schedules', where: 'anywhere' },
  { keys: 'g t', command: 'go.triggers', does: 'Go to Triggers', where: 'anywhere' },
  { keys: 'g e', command: 'go.evals', does: 'Go to Evals', where: 'anywhere' },
  { keys: 'g h', command: 'go.health', does: 'Go to Health', where: 'anywhere' },
  { keys: 'g p', command: 'go.settings', does: 'Go to Settings', where: 'anywhere' },
  { keys: 'n', command: 'new', does: 'New session', where: 'anywhere' },
  { keys: 'x', command: 'mark', does: 'Mark to compare', where: 'anywhere' },
  { keys: 'j', command: 'next', does: 'Next row', where: 'list' },
  { keys: 'k', command: 'previous', does: 'Previous row', where: 'list' },
  { keys: 'Enter', command: 'open', does: 'Open the row', where: 'list' },
  { keys: 'o', command: 'children', does: 'Show or hide its children', where: 'list' },
  { keys: 'ArrowRight', command: 'event.next', does: 'Next event', where: 'session' },
  { keys: 'ArrowLeft', command: 'event.previous', does: 'Previous event', where: 'session' },
  { keys: 'Shift+ArrowRight', command: 'turn.next', does: 'Next turn', where: 'session' },
  { keys: 'Shift+ArrowLeft', command: 'turn.previous', does: 'Previous turn', where: 'session' },
  { keys: '.', command: 'live', does: 'Follow live', where: 'session' },
  { keys: 't', command: 'view.timeline', does: 'Timeline', where: 'session' },
  { keys: 'w', command: 'view.waterfall', does: 'Waterfall', where: 'session' },
  { keys: 'g g', command: 'view.graph', does: 'Graph', where: 'session' },
  { keys: 'c', command: 'view.context', does: 'Context', where: 'session' },
  { keys: 'r', command: 'view.raw', does: 'Raw events', where: 'session' },
  { keys: 'f', command: 'fork', does: 'Fork from the shown event', where: 'session' },
  { keys: 'y', command: 'copy', does: 'Copy the link', where: 'session' },
  { keys: 's', command: 'send', does: 'Send a message', where: 'session' },
]

/** The name of a pressed key, in the spelling of this list. */
export function keyName(event: {
  readonly key: string
  readonly ctrlKey: boolean
  readonly metaKey: boolean
  readonly shiftKey: boolean
}): string {
  const held = event.ctrlKey || event.metaKey ? 'Ctrl+' : event.shiftKey && event.key.length > 1 ? 'Shift+' : ''
  return held + (held === 'Ctrl+' ? event.key.toLowerCase() : event.key)
}

/** The key caps to display. */
export function keyCaps(keys: string): readonly string[] {
  const words: Readonly<Record<string, string>> = { ArrowRight: '→', ArrowLeft: '←' }
  return keys
    .split(/[ +]/)
    .map((key) => words[key] ?? (key.length === 1 && keys.includes('+') ? key.toUpperCase() : key))
}
