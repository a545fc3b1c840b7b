// A session that works through its messages, as a pure fold: which items wait, which are dead letters, and which calls
// come next. The messages of the session are the items, and its calls are the tries. It has no clock and runs nothing.
import type { CallKey, Json, Part } from '../kernel/content.ts'
import { mustStillWait } from '../kernel/clock.ts'
import type { Message } from '../kernel/transcript.ts'
import { readDecision } from '../view/letter-decision.ts'
import { isObject, parseJson } from '../view/untrusted-json.ts'
import { clipText, textOf } from '../view/shown-text.ts'

/** Items of one group are worked on in order, one at a time. `data` is what the work is about. */
export type QueueItem = { readonly key: string; readonly group: string; readonly data: Json }

/**
 * `due`: not before this time, as it was said at the time `at`. `reason`: why the last try failed. `deaths`: how often it was a dead letter. `repeated`: a
 * try began before.
 */
export type WaitingItem = QueueItem & {
  readonly tries: number
  readonly due: number
  readonly at: number
  readonly reason: string
  readonly deaths: number
  readonly repeated: boolean
}

/** An item that was given up. `at` is when; 0 if that is not known. */
export type DeadItem = QueueItem & {
  readonly tries: number
  readonly reason: string
  readonly at: number
  readonly deaths: number
}

/** The result of a try. An item that is done is forgotten. */
export type TryResult =
  | { readonly type: 'done' }
  | { readonly type: 'again'; readonly reason: string; readonly due: number; readonly at: number }
  | { readonly type: 'dead'; readonly reason: string; readonly at: number }

export type ItemQueue = { readonly waiting: Map<string, WaitingItem>; readonly dead: Map<string, DeadItem> }

/** The calls to make now, or the time to wait for; both empty: there is nothing to do. */
export type QueuePlan = { readonly calls: readonly WaitingItem[]; readonly until: number | null }

const REASON_CHARS = 500

type FoldedQueue = ItemQueue & { readonly calls: Map<CallKey, string> }
/** The queue after a message, so that the next fold goes on from there. A transcript keeps its messages. */
const folded = new WeakMap<Message, FoldedQueue>()

/** The queue after these messages. The first may be a checkpoint, which stands for everything before it. */
export function foldQueue(messages: readonly Message[]): ItemQueue {
  let from = messages.length
  while (from > 0 && !folded.has(messages[from - 1] as Message)) from -= 1
  const known = from === 0 ? undefined : folded.get(messages[from - 1] as Message)
  const queue: FoldedQueue = {
    waiting: new Map(known?.waiting),
    dead: new Map(known?.dead),
    calls: new Map(known?.calls),
  }
  for (const message of messages.slice(from)) takeMessage(queue, message)
  const last = messages.at(-1)
  if (last) folded.set(last, queue)
  return { waiting: new Map(queue.waiting), dead: new Map(queue.dead) }
}

function takeMessage(queue: FoldedQueue, message: Message): void {
  if (message.role === 'user') takeInput(queue, textOf(message.parts))
  else if (message.role === 'assistant') {
    const checkpoint = readCheckpoint(message.parts)
    if (checkpoint) restoreQueue(queue, checkpoint)
    for (const { key, args } of message.calls)
      if (isObject(args) && typeof args['key'] === 'string') queue.calls.set(key, args['key'])
  } else {
    const key = queue.calls.get(message.call)
    queue.calls.delete(message.call)
    const item = key === undefined ? undefined : queue.waiting.get(key)
    if (item) takeResult(queue, item, message)
  }
}

function takeInput({ waiting, dead }: ItemQueue, text: string): void {
  const value = parseJson(text)
  const decision = readDecision(value)
  if (decision) {
    const letter = dead.get(decision.letter)
    if (letter?.deaths !== decision.deaths) return
    dead.delete(letter.key)
    const { key, group, data, deaths } = letter
    if (decision.decision === 'retry') waiting.set(key, { ...NEW_ITEM, key, group, data, deaths, repeated: true })
  } else if (isObject(value)) {
    const { key, group, data = null } = value
    if (typeof key !== 'string' || typeof group !== 'string' || waiting.has(key) || dead.has(key)) return
    waiting.set(key, { ...NEW_ITEM, key, group, data })
  }
}

const NEW_ITEM = { tries: 0, due: 0, at: 0, reason: '', deaths: 0, repeated: false } as const

type ToolMessage = Extract<Message, { role: 'tool' }>

function takeResult({ waiting, dead }: ItemQueue, item: WaitingItem, { ok, status, content }: ToolMessage): void {
  const text = typeof content === 'string' ? content : ''
  const result = ok ? readTryResult(text) : null
  const { key, group, data, deaths } = item
  const tries = item.tries + 1
  const again = { ...item, repeated: true }
  if (result?.type === 'done') waiting.delete(key)
  else if (result?.type === 'dead') {
    waiting.delete(key)
    dead.set(key, { key, group, data, tries, reason: result.reason, at: result.at, deaths: deaths + 1 })
  } else if (result?.type === 'again')
    waiting.set(key, { ...again, tries, reason: result.reason, due: result.due, at: result.at })
  // The process was told to end during the try, which is not the work's failure.
  else if (status === 'aborted') waiting.set(key, again)
  else waiting.set(key, { ...again, tries, reason: clipText(text, REASON_CHARS), due: 0 })
}

/** Plans at most `limit` calls, one of each group. An item that must wait holds back those after it in its group. */
export function planQueue({ waiting }: ItemQueue, now: number, limit: number): QueuePlan {
  const groups = new Set<string>()
  const calls: WaitingItem[] = []
  let until = Number.POSITIVE_INFINITY
  for (const item of waiting.values()) {
    if (calls.length === limit) break
    if (groups.has(item.group)) continue
    groups.add(item.group)
    if (mustStillWait(item.due, item.at, now)) until = Math.min(until, item.due)
    else calls.push(item)
  }
  return { calls, until: calls.length > 0 || !Number.isFinite(until) ? null : until }
}

export function encodeTryResult(result: TryResult): string {
  return JSON.stringify('reason' in result ? { ...result, reason: clipText(result.reason, REASON_CHARS) } : result)
}

function readTryResult(text: string): TryResult | null {
  const value = parseJson(text)
  if (!isObject(value)) return null
  const { type, reason, due, at } = value
  if (type === 'done') return { type }
  if (typeof reason !== 'string' || typeof at !== 'number') return null
  if (type === 'again' && typeof due === 'number') return { type, reason, due, at }
  return type === 'dead' ? { type, reason, at } : null
}

/** The whole queue as the text of a reply, so that nothing older is needed. */
export function encodeQueueCheckpoint({ waiting, dead }: ItemQueue): string {
  return JSON.stringify({ waiting: [...waiting.values()], dead: [...dead.values()] })
}

type Checkpoint = { readonly waiting: readonly WaitingItem[]; readonly dead: readonly DeadItem[] }

/** Only this planner writes replies, so the items are what it wrote. */
function readCheckpoint(parts: readonly Part[]): Checkpoint | null {
  const text = textOf(parts)
  const value = text === '' ? null : parseJson(text)
  return isObject(value) && Array.isArray(value['waiting']) && Array.isArray(value['dead'])
    ? (value as unknown as Checkpoint)
    : null
}

function restoreQueue({ waiting, dead, calls }: FoldedQueue, from: Checkpoint): void {
  for (const map of [waiting, dead, calls]) map.clear()
  for (const item of from.waiting) waiting.set(item.key, item)
  for (const item of from.dead) dead.set(item.key, item)
}
