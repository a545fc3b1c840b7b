// Reads a session of Claude Code: one entry on each line, linked by `uuid` and `parentUuid`. The links form a tree, since
// a message can be edited and sent again: the branch of the last entry is read, with the results of its calls and the
// other pieces of its replies. Pure.
import type { Json } from '../../kernel/content.ts'
import { asString, type JsonObject, isObject, ownOf } from '../../view/untrusted-json.ts'
import { type ForeignItem, type ForeignTranscript, readEntries } from './foreign-item.ts'
import { readBlockMessage } from './message-entries.ts'

export function readClaudeCode(values: readonly (Json | undefined)[]): ForeignTranscript {
  const entries = values.flatMap((value) => (isObject(value) && isMessage(value) ? [value] : []))
  const branch = branchOf(values.filter(isObject), entries)
  return readEntries(values, (entry) => (branch.has(entry) ? readMessage(entry) : null))
}

/** Not of a subagent, and said by a person or a model rather than by the program. */
function isMessage(entry: JsonObject): boolean {
  const type = ownOf(entry, 'type')
  if (type !== 'user' && type !== 'assistant') return false
  const message = ownOf(entry, 'message')
  const isOwn = ['isSidechain', 'isMeta', 'isApiErrorMessage'].some((flag) => ownOf(entry, flag) === true)
  return !isOwn && isObject(message) && ownOf(message, 'model') !== '<synthetic>'
}

/** A message of the branch of the last one. All of them if they are not linked. */
function branchOf(all: readonly JsonObject[], messages: readonly JsonObject[]): ReadonlySet<JsonObject> {
  const last = messages.at(-1)
  if (last === undefined || uuidOf(last) === '') return new Set(messages)
  const known = new Map(all.map((entry) => [uuidOf(entry), entry] as const))
  const line = new Set<JsonObject>()
  let isWhole = true
  for (let entry: JsonObject | undefined = last; entry !== undefined && !line.has(entry); ) {
    line.add(entry)
    const parent = asString(ownOf(entry, 'parentUuid')) || asString(ownOf(entry, 'logicalParentUuid'))
    if (parent === '') break
    entry = known.get(parent)
    isWhole = entry !== undefined
  }
  // A parent is missing: what stands before it cannot be told from other branches, and is taken as it is.
  const first = messages.find((entry) => line.has(entry)) ?? last
  const before = isWhole ? [] : messages.slice(0, messages.indexOf(first))
  const replies = new Set([...line].map(replyOf).filter((id) => id !== ''))
  const taken = messages.filter((entry) => line.has(entry) || replies.has(replyOf(entry)))
  const calls = new Set(taken.flatMap((entry) => idsOf(entry, 'call')))
  const results = messages.filter((entry) => idsOf(entry, 'result').some((id) => calls.has(id)))
  const chosen = new Set([...before, ...taken, ...results])
  const [beginning] = messages.filter((entry) => chosen.has(entry))
  // A summary of a full context repeats what stands before it.
  for (const entry of chosen) if (ownOf(entry, 'isCompactSummary') === true && entry !== beginning) chosen.delete(entry)
  return chosen
}

function uuidOf(entry: JsonObject): string {
  return asString(ownOf(entry, 'uuid'))
}

/** The pieces of one reply have the same id. */
function replyOf(entry: JsonObject): string {
  const message = ownOf(entry, 'message')
  return ownOf(entry, 'type') === 'assistant' && isObject(message) ? asString(ownOf(message, 'id')) : ''
}

function idsOf(entry: JsonObject, type: 'call' | 'result'): readonly string[] {
  return readMessage(entry).flatMap((item) => (item.type === type ? [item.id] : []))
}

function readMessage(entry: JsonObject): readonly ForeignItem[] {
  const message = ownOf(entry, 'message')
  if (!isObject(message)) return []
  // The type of the entry counts: older versions leave out the role of a reply.
  return readBlockMessage({ ...message, role: ownOf(entry, 'type') ?? null }) ?? []
}
