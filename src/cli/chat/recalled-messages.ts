// The end of a session that a chat goes on with, as the chat showed it. Only so much is drawn as a person scrolls back: a
// long session opens as fast as a short one.
import type { Event } from '../../kernel/index.ts'
import { countNoun } from '../../view/shown-text.ts'
import { ANSWER_CUT, isStoppedFailure } from '../present/outcome.ts'
import { modelText } from '../present/markdown-stream.ts'
import type { LineKind, Surface } from '../present/screen.ts'
import { type ChatView, messageText } from './chat-view.ts'
import { type FoldedCall, finishedRows } from './chat-calls.ts'

const ROWS_MAX = 400
const CALLS_MAX = 8

/** `of`: the session whose log has the event. */
export type RecalledEvent = { readonly of: string; readonly event: Event }

type Recalled = { readonly kind: LineKind; readonly rows: readonly string[] }

/** Shows the last messages with their calls, below the number of those before them. */
export function showLastMessages(view: ChatView, out: Surface, all: readonly RecalledEvent[]): void {
  const shown: Recalled[] = []
  let room = ROWS_MAX
  let calls: FoldedCall[] = []
  const put = (kind: LineKind, rows: readonly string[]): void => {
    if (rows.length === 0) return
    const kept = rows.slice(-room)
    shown.push({ kind, rows: kept })
    room -= kept.length
  }
  const putCalls = (): void => {
    if (calls.length > 0) put('call', callRowsOf(calls, out))
    calls = []
  }
  let at = all.length
  while (at > 0 && room > 0) {
    at -= 1
    const { of, event } = all[at] ?? {}
    if (!event || of === undefined) continue
    const call = event.type === 'agent.tool_result' ? view.calls.at(of, event.call) : undefined
    if (call) calls.unshift(call)
    if (!hasText(event)) continue
    putCalls()
    if (event.type === 'user.message') put('you', view.messageRows(messageText(event)))
    else if (event.type === 'model.failed') {
      put('note', [out.paint.yellow(`! ${ANSWER_CUT}`)])
      put('model', lastRows(event.partial ?? '', out))
    } else if (event.type === 'agent.message') put('model', lastRows(messageText(event), out))
  }
  putCalls()
  const earlier = all.slice(0, at).filter(({ event }) => hasText(event)).length
  if (earlier > 0) out.say('note', out.paint.dim(`… ${countNoun(earlier, 'earlier message')}`))
  for (const { kind, rows } of shown.toReversed()) out.say(kind, rows.join('\n'))
}

function hasText(event: Event): boolean {
  if (event.type === 'user.message') return event.report === undefined
  if (event.type === 'model.failed') return isStoppedFailure(event) && (event.partial ?? '').trim() !== ''
  return event.type === 'agent.message' && messageText(event).trim() !== ''
}

function callRowsOf(calls: readonly FoldedCall[], { paint, columns }: Surface): readonly string[] {
  const hidden = calls.length - CALLS_MAX
  const more = hidden > 0 ? [paint.dim(`  … ${countNoun(hidden, 'call')} before these: /calls lists them`)] : []
  return [...more, ...calls.slice(-CALLS_MAX).flatMap((call) => finishedRows(call, paint, columns))]
}

const FENCE = /^ {0,3}(?:`{3,}|~{3,}).*$/gm

/** The last rows of a text. What cannot be among them is not drawn. */
function lastRows(text: string, { style }: Surface): readonly string[] {
  const chars = ROWS_MAX * style.columns
  const from = text.length > chars ? text.indexOf('\n', text.length - chars) + 1 : 0
  // Code that began before is still code.
  const fences = from === 0 ? [] : (text.slice(0, from).match(FENCE) ?? [])
  const head = fences.length % 2 === 1 ? `${fences.at(-1)}\n` : ''
  return modelText(`${head}${text.slice(from)}`, style).split('\n')
}
