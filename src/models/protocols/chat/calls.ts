// Pieces of calls, put together. Hosts agree on little here: the index may be missing or always 0, the id may be repeated,
// missing or new, and a call may come whole. The rules for what belongs together are in `ownerOf`.
import type { Json } from '../../../kernel/content.ts'
import { type JsonObject, isObject, stringOf } from '../../../view/json.ts'

export type CallState = {
  readonly index: number | null
  readonly id: string
  readonly tool: string
  readonly args: string
  /** Where it stands among the parts and calls of the reply. */
  readonly part: number
  /** Gemini's signature of the call, to be sent back with it. */
  readonly extra: Json | undefined
}

export type Piece = Omit<CallState, 'part'>

/** More than any provider allows: a stream that has more is not one of theirs. */
export const CALLS_MAX = 256

export function pieceOf(entry: unknown): Piece | null {
  if (!isObject(entry) || !isObject(entry['function'])) return null
  const { index, extra_content: extra, function: called } = entry
  const id = stringOf(entry['id'])
  return {
    index: typeof index === 'number' && Number.isSafeInteger(index) ? index : null,
    // Mistral's own word for no id.
    id: id === 'null' ? '' : id,
    tool: stringOf(called['name']),
    args: argsOf(called['arguments']),
    extra: extra ?? undefined,
  }
}

/** The old form has one call, without an index or an id. */
export function oldPieceOf(call: JsonObject): Piece {
  return { index: -1, id: '', tool: stringOf(call['name']), args: argsOf(call['arguments']), extra: undefined }
}

/** Where the call that this piece belongs to stands; -1 for a call that begins here. */
export function ownerOf(calls: readonly CallState[], piece: Piece): number {
  const { index, id, tool } = piece
  if (index === null && id === '' && tool === '') return calls.length - 1
  const at = calls.findLastIndex((call) => (index === null ? id !== '' && call.id === id : call.index === index))
  const call = calls[at]
  if (call === undefined || tool === '') return at
  // Several calls under one index: a new id with a name, or a name again after arguments that were whole.
  const other = id === '' ? piece.args !== '' && isWhole(call.args) : call.id !== '' && call.id !== id
  return other ? -1 : at
}

export function joined(call: CallState, piece: Piece): CallState {
  return {
    index: call.index,
    id: call.id || piece.id,
    tool: call.tool || piece.tool,
    args: call.args + piece.args,
    part: call.part,
    extra: piece.extra ?? call.extra,
  }
}

export function isWhole(args: string): boolean {
  try {
    JSON.parse(args)
    return true
  } catch {
    return false
  }
}

/** Some hosts send the arguments as the object itself. */
function argsOf(value: unknown): string {
  return isObject(value) ? JSON.stringify(value) : stringOf(value)
}
