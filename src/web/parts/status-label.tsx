// A status as a glyph, a word and a colour, so that none of them is needed alone.
import { memo } from 'react'
import { ownOf } from '../../view/untrusted-json.ts'

type StatusTone = 'ok' | 'warn' | 'bad' | 'accent' | 'dim'
type StatusLook = { readonly glyph: string; readonly tone: StatusTone; readonly word?: string }

/** The looks of session, run, call, node and stream states. An unknown state is shown by its own name. */
const LOOKS: Readonly<Record<string, StatusLook>> = {
  requires_action: { glyph: '◆', tone: 'warn', word: 'requires action' },
  asked: { glyph: '◆', tone: 'warn', word: 'waits for approval' },
  waits: { glyph: '◆', tone: 'warn', word: 'waits' },
  held: { glyph: '◆', tone: 'warn' },
  running: { glyph: '●', tone: 'accent' },
  runs: { glyph: '●', tone: 'accent', word: 'running' },
  live: { glyph: '●', tone: 'ok' },
  outside: { glyph: '◌', tone: 'accent', word: 'waits for an answer' },
  connecting: { glyph: '◌', tone: 'dim' },
  polling: { glyph: '◌', tone: 'dim', word: 'reading every few seconds' },
  offline: { glyph: '✕', tone: 'bad' },
  rescheduling: { glyph: '↻', tone: 'warn', word: 'tries again' },
  completed: { glyph: '✓', tone: 'ok' },
  replied: { glyph: '✓', tone: 'ok' },
  ok: { glyph: '✓', tone: 'ok' },
  idle: { glyph: '○', tone: 'dim' },
  new: { glyph: '○', tone: 'dim' },
  open: { glyph: '○', tone: 'dim' },
  proposed: { glyph: '○', tone: 'dim' },
  terminated: { glyph: '■', tone: 'dim', word: 'closed' },
  interrupted: { glyph: '■', tone: 'dim' },
  aborted: { glyph: '■', tone: 'dim' },
  limit: { glyph: '▲', tone: 'warn', word: 'limit reached' },
  timeout: { glyph: '▲', tone: 'warn', word: 'timed out' },
  halted: { glyph: '▲', tone: 'warn' },
  denied: { glyph: '✕', tone: 'bad' },
  failed: { glyph: '✕', tone: 'bad' },
  error: { glyph: '✕', tone: 'bad', word: 'failed' },
  lost: { glyph: '!', tone: 'warn', word: 'attempt lost' },
  unknown: { glyph: '?', tone: 'bad', word: 'unknown: it may have happened' },
  quarantined: { glyph: '⊘', tone: 'bad' },
}

export const StatusLabel = memo(function Status({
  of,
  words,
}: {
  readonly of: string
  readonly words?: string | undefined
}) {
  const look = ownOf(LOOKS, of) ?? { glyph: '·', tone: 'dim' as const }
  return (
    <span className={`status ${look.tone}`}>
      <span className={of === 'running' || of === 'runs' || of === 'live' ? 'glyph beats' : 'glyph'} aria-hidden>
        {look.glyph}
      </span>
      {words ?? look.word ?? of.replaceAll('_', ' ')}
    </span>
  )
})
