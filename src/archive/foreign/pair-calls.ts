// Makes turns of the items of a foreign transcript: each reply with its calls, and exactly one result for each call. A
// provider refuses a conversation in which they do not match. Pure.
import type { Json, Part } from '../../kernel/content.ts'
import type { HistoryResult, HistoryTurn } from '../../sessions/bring/bring.ts'
import { clipText } from '../../view/shown-text.ts'
import type { ForeignItem, ForeignPart } from './foreign-item.ts'

type CallItem = Extract<ForeignItem, { type: 'call' }>
type ResultItem = Extract<ForeignItem, { type: 'result' }>

/** Turns the parts of the file into parts of a log: texts are cleaned, files are kept beside the log. */
export type PartWriter = {
  readonly name: (text: string) => string
  readonly args: (args: Json) => Json
  readonly parts: (parts: readonly ForeignPart[]) => readonly Part[]
  readonly result: (result: Omit<ResultItem, 'type'>) => HistoryResult
}

/** `unanswered`: calls without a result. `unmatched`: results without a call, and second ones. */
export type PairedTurns = {
  readonly turns: readonly HistoryTurn[]
  readonly unanswered: number
  readonly unmatched: number
}

const INTERRUPTED =
  'Interrupted: the transcript has no result of this call. It was made elsewhere, and it is not known whether it took effect.'
const NAME_CHARS_MAX = 200

export function pairCalls(items: readonly ForeignItem[], write: PartWriter): PairedTurns {
  const { results, unmatched } = matchResults(items)
  const turns: HistoryTurn[] = []
  let reply: { readonly parts: Part[]; readonly calls: CallItem[] } | null = null
  let isAnswered = false
  let made = 0
  let unanswered = 0
  const close = (): void => {
    if (reply === null) return
    const calls = reply.calls.map((call) => ({ call, id: `imported_${++made}` }))
    const answers = calls.map(({ call, id }) => {
      const result = results.get(call)
      if (result === undefined) unanswered += 1
      return result === undefined
        ? { id, ok: false, status: 'unknown' as const, content: INTERRUPTED, parts: [] }
        : write.result({ ...result, id })
    })
    const named = calls.map(({ call, id }) => ({ id, tool: nameOf(call, write), args: write.args(call.args) }))
    if (reply.parts.length + named.length > 0)
      turns.push({ role: 'assistant', parts: reply.parts, calls: named, results: answers })
    reply = null
  }
  for (const item of items) {
    if (item.type === 'result') {
      isAnswered = true
      continue
    }
    // A new reply begins after a message, and after the results of the reply before.
    if (item.type === 'user' || isAnswered) close()
    isAnswered = false
    if (item.type === 'user') {
      const parts = write.parts(item.parts)
      if (parts.length > 0) turns.push({ role: 'user', parts })
      continue
    }
    reply ??= { parts: [], calls: [] }
    if (item.type === 'call') reply.calls.push(item)
    else reply.parts.push(...write.parts(item.parts))
  }
  close()
  return { turns, unanswered, unmatched }
}

/** The result of each call: the first one with its id after it, or else one before it. */
function matchResults(items: readonly ForeignItem[]) {
  const open = new IdQueues<CallItem>()
  const early = new IdQueues<ResultItem>()
  const results = new Map<CallItem, ResultItem>()
  const calls: CallItem[] = []
  let unmatched = 0
  for (const item of items) {
    if (item.type === 'call') {
      calls.push(item)
      open.add(item.id, item)
    }
    if (item.type !== 'result') continue
    const call = open.next(item.id)
    if (call !== undefined) results.set(call, item)
    else {
      early.add(item.id, item)
      unmatched += 1
    }
  }
  for (const call of calls) {
    const result = results.has(call) ? undefined : early.next(call.id)
    if (result === undefined) continue
    results.set(call, result)
    unmatched -= 1
  }
  return { results, unmatched }
}

/** The items of each id that are not taken yet, in their order. */
class IdQueues<T> {
  readonly #queues = new Map<string, { readonly items: T[]; taken: number }>()

  add(id: string, item: T): void {
    const queue = this.#queues.get(id) ?? { items: [], taken: 0 }
    this.#queues.set(id, queue)
    queue.items.push(item)
  }

  next(id: string): T | undefined {
    const queue = this.#queues.get(id)
    return queue === undefined ? undefined : queue.items[queue.taken++]
  }
}

function nameOf({ tool }: CallItem, write: PartWriter): string {
  const name = clipText(write.name(tool.slice(0, 4 * NAME_CHARS_MAX)), NAME_CHARS_MAX)
    .replace(/\s+/g, ' ')
    .trim()
  return name === '' ? 'unnamed' : name
}
