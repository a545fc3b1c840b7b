// The Messages protocol of Anthropic, and the reader of its stream, one step per event. Requests are written in encode.ts; the
// state and the reply made of it are in reply.ts. The tests cite where the rules are published. No I/O and no keys.
import type { Json } from '../../../kernel/content.ts'
import { failure, failureOf } from '../../http/failures.ts'
import type { Protocol, Target, WireEvent } from '../protocol.ts'
import { encode } from './encode.ts'
import { counted, isCompaction, isKept, nothingHeard, replyOf, type Block, type Heard } from './reply.ts'
import { isObject, listOf, parsed, stringOf } from '../../../view/json.ts'
import type { Delta } from '../../../ports/model.ts'

export const messages: Protocol<State> = {
  name: 'messages',
  encode,
  begin: (target) => ({ heard: begunWith(target), text: '' }),
  step,
  over: ({ heard }) => heard.ended || heard.failed !== null,
  finish: (state) => replyOf(settled(state)),
  whole(body, target) {
    const data = parsed(body)
    if (!isObject(data)) return failure('network', 'The answer is not JSON.')
    if (isObject(data.error)) return failureIn(data)
    if (!Array.isArray(data.content)) return failure('network', 'The answer is not a message.')
    const heard = filled(begunWith(target), data.content as readonly Json[])
    if (heard === null) return failure('network', 'The answer is damaged: one of its blocks cannot be read.')
    const stop = typeof data.stop_reason === 'string' ? data.stop_reason : null
    return replyOf({ ...heard, stop, ended: true, counts: counted(heard.counts, data.usage) })
  },
}

/** A turn that was paused goes on from what it had. */
function begunWith(target: Target): Heard {
  const heard = nothingHeard(target)
  return target.paused === undefined ? heard : (filled(heard, target.paused) ?? heard)
}

/** With these blocks, each of them whole. Null if one is invalid. */
function filled(heard: Heard, content: readonly Json[]): Heard | null {
  let now: Heard = heard
  for (const block of content) {
    // No index of the stream, whose own blocks are counted from 0.
    const next = begun(now, -1 - now.blocks.length, block)
    if (next === null) return null
    now = next
  }
  return { ...now, blocks: now.blocks.map((block) => ({ ...block, open: false })), now: -1 }
}

// A text delta makes one small object; the list of blocks is copied only when a block begins, ends or is resumed.

/** `text` is the text so far of the block being streamed. */
export type State = { readonly heard: Heard; readonly text: string }
type Stepped = readonly [State, readonly Delta[]]
type Data = Readonly<Record<string, Json>>

const QUIET: readonly Delta[] = []

function step(state: State, event: WireEvent): Stepped {
  const { heard } = state
  if (heard.ended || heard.failed !== null) return [state, QUIET]
  const data = parsed(event.data)
  if (data === undefined) return event.data === '' || event.data === '[DONE]' ? [state, QUIET] : broken(state)
  if (!isObject(data)) return [state, QUIET]
  switch (typeof data.type === 'string' ? data.type : event.event) {
    case 'content_block_delta':
      return isObject(data.delta) ? delta(state, data.index, data.delta) : broken(state)
    case 'content_block_start':
      return start(state, data)
    case 'content_block_stop':
      return stop(state, data.index)
    case 'message_start':
      return isObject(data.message) ? opened(state, data.message) : [state, QUIET]
    case 'message_delta': {
      const reason = isObject(data.delta) ? data.delta.stop_reason : null
      const counts = counted(heard.counts, data.usage)
      return [{ ...state, heard: { ...heard, counts, stop: typeof reason === 'string' ? reason : heard.stop } }, QUIET]
    }
    case 'message_stop':
      return [{ ...state, heard: { ...heard, ended: true } }, QUIET]
    case 'error':
      return [{ ...state, heard: { ...heard, failed: failureIn(data) } }, QUIET]
    default:
      return [state, QUIET]
  }
}

/** The start of the message, which may hold blocks already: calls made by code that the provider ran. */
function opened(state: State, { id, usage, content, stop_reason: reason }: Data): Stepped {
  const { heard } = state
  const name = typeof id === 'string' ? id : ''
  if (heard.message !== null) return heard.message === name ? [state, QUIET] : broken(state, SECOND)
  const full = filled(heard, listOf(content))
  if (full === null) return broken(state)
  const stop = typeof reason === 'string' ? reason : heard.stop
  const deltas = full.blocks.slice(heard.blocks.length).flatMap((block) => deltaOf(block))
  return [{ ...state, heard: { ...full, message: name, stop, counts: counted(heard.counts, usage) } }, deltas]
}

const SECOND = 'The stream was damaged: a second message began in it.'

/** What a block began with; nothing for most. */
function deltaOf({ type, text, part }: Block): readonly Delta[] {
  return text === '' ? QUIET : [{ kind: type === 'text' ? 'text' : 'reasoning', part, text }]
}

/** All blocks with all of their text. */
function settled({ heard, text }: State): Heard {
  const { blocks, now } = heard
  const said = blocks[now]
  return said === undefined ? heard : { ...heard, blocks: blocks.with(now, { ...said, text }), now: -1 }
}

function failureIn(data: Data): ReturnType<typeof failureOf> {
  const { type, message } = isObject(data.error) ? data.error : { type: null, message: data.error }
  const code = typeof type === 'string' ? type : 'api_error'
  return failureOf({
    code,
    message: typeof message === 'string' ? message : 'The provider did not say what went wrong.',
  })
}

/** Adds a block and its position. A known index is not added again. Null if the block is invalid. */
function begun(heard: Heard, index: Json | undefined, given: Json | undefined): Heard | null {
  if (typeof index !== 'number' || !isObject(given)) return null
  if (heard.blocks.some((block) => block.index === index || isSameCall(block, given))) return heard
  const type = typeOf(given)
  if (type === 'call' && typeof given.name !== 'string') return null
  if ((type !== 'other' || isKept(given)) && !isWritable(given)) return null
  const said = type === 'text' ? given.text : type === 'thinking' ? given.thinking : ''
  const signature = typeof given.signature === 'string' ? given.signature : ''
  const text = typeof said === 'string' ? said : ''
  const counts = type === 'call' || type === 'redacted' || text !== '' || signature !== ''
  const part = counts && type !== 'other' ? heard.parts : -1
  const block: Block = { index, type, text, signature, open: true, part, at: heard.calls, given }
  return {
    ...heard,
    blocks: [...heard.blocks, block],
    now: heard.blocks.length,
    parts: heard.parts + (part === -1 ? 0 : 1),
    calls: heard.calls + (type === 'call' ? 1 : 0),
  }
}

/** A call that the start of the message held already. */
function isSameCall({ index, type, given }: Block, { type: kind, id }: Data): boolean {
  return index < 0 && type === 'call' && kind === 'tool_use' && id === given.id
}

const TYPES: ReadonlyMap<Json | undefined, Block['type']> = new Map([
  ['text', 'text'],
  ['thinking', 'thinking'],
  ['redacted_thinking', 'redacted'],
  ['tool_use', 'call'],
])

function typeOf(given: Data): Block['type'] {
  return TYPES.get(given.type) ?? 'other'
}

/** JSON nested too deeply to serialise can be neither stored nor sent back. */
function isWritable(given: Data): boolean {
  try {
    return JSON.stringify(given) !== ''
  } catch {
    return false
  }
}

function broken(state: State, why = 'The stream was damaged: one of its events cannot be read.'): Stepped {
  return [{ ...state, heard: { ...state.heard, broken: state.heard.broken ?? why } }, QUIET]
}

function start(state: State, data: Data): Stepped {
  const before = settled(state)
  const heard = begun(before, data.index, data.content_block)
  if (heard === null) return broken(state)
  // A known index: the block being streamed goes on.
  if (heard === before) return [state, QUIET]
  const block = heard.blocks[heard.now] as Block
  return [{ heard, text: block.text }, deltaOf(block)]
}

function stop(state: State, index: Json | undefined): Stepped {
  const heard = settled(state)
  const at = heard.blocks.findIndex((block) => block.index === index && block.open)
  if (at === -1) return [state, QUIET]
  const blocks = heard.blocks.with(at, { ...(heard.blocks[at] as Block), open: false })
  return [{ heard: { ...heard, blocks }, text: '' }, QUIET]
}

function delta(state: State, index: Json | undefined, piece: Data): Stepped {
  const { type, text, thinking, partial_json, signature, citation } = piece
  const here = at(state, index)
  // The block was never started, or has ended.
  if (here === null) return [state, QUIET]
  switch (type) {
    case 'text_delta':
      return say(here, 'text', 'text', text)
    case 'thinking_delta':
      return say(here, 'thinking', 'reasoning', thinking)
    case 'input_json_delta':
      return say(here, 'call', 'arguments', partial_json)
    case 'signature_delta':
      return sign(here, signature)
    case 'citations_delta':
      return cite(here, citation)
    case 'compaction_delta':
      return summarise(here, piece)
    default:
      return [state, QUIET]
  }
}

/** The state in which the block with this index is the one being streamed. */
function at(state: State, index: Json | undefined): State | null {
  const { blocks, now } = state.heard
  const block = blocks[now]
  if (block !== undefined && block.index === index) return state
  const found = blocks.findIndex((other) => other.index === index && other.open)
  if (found === -1) return null
  return { heard: { ...settled(state), now: found }, text: (blocks[found] as Block).text }
}

function say(state: State, type: Block['type'], kind: Delta['kind'], text: Json | undefined): Stepped {
  const { heard } = state
  const block = heard.blocks[heard.now] as Block
  if (typeof text !== 'string') return broken(state)
  // The input of a tool that the provider runs: needed if the turn is paused.
  if (block.type === 'other' && type === 'call') return [{ heard, text: state.text + text }, QUIET]
  if (block.type !== type || text === '') return [state, QUIET]
  const proposed = type === 'call' ? { proposed: { tool: stringOf(block.given.name), index: block.at } } : undefined
  if (block.part !== -1) {
    return [{ heard, text: state.text + text }, [{ kind, part: block.part, text, ...proposed }]]
  }
  return [{ heard: placed(heard, block), text: state.text + text }, [{ kind, part: heard.parts, text, ...proposed }]]
}

function sign(state: State, signature: Json | undefined): Stepped {
  const { heard, text } = state
  const block = heard.blocks[heard.now] as Block
  if (typeof signature !== 'string') return broken(state)
  if (block.type !== 'thinking' || signature === '') return [state, QUIET]
  const signed = { ...block, signature }
  if (block.part === -1) return [{ heard: placed(heard, signed), text }, QUIET]
  return [{ heard: { ...heard, blocks: heard.blocks.with(heard.now, signed) }, text }, QUIET]
}

/** For the block itself, which is sent back, and for the sources of the reply. */
function cite({ heard, text }: State, citation: Json | undefined): Stepped {
  const block = heard.blocks[heard.now] as Block
  if (block.type !== 'text' || !isObject(citation)) return [{ heard, text }, QUIET]
  const given = { ...block.given, citations: [...listOf(block.given.citations), citation] }
  return [{ heard: { ...heard, blocks: heard.blocks.with(heard.now, { ...block, given }) }, text }, QUIET]
}

/** All fields of the piece, whatever they are: the block goes back as the provider made it. */
function summarise({ heard, text }: State, { type: _, content, ...fields }: Data): Stepped {
  const block = heard.blocks[heard.now] as Block
  if (!isCompaction(block.given) || !isWritable(fields)) return [{ heard, text }, QUIET]
  const before = block.given.content
  const summary = typeof before === 'string' && typeof content === 'string' ? before + content : (content ?? before)
  const given = { ...block.given, ...fields, ...(summary === undefined ? {} : { content: summary }) }
  return [{ heard: { ...heard, blocks: heard.blocks.with(heard.now, { ...block, given }) }, text }, QUIET]
}

/** A block gets its position with its first content; an empty block gets none. */
function placed(heard: Heard, block: Block): Heard {
  const blocks = heard.blocks.with(heard.now, { ...block, part: heard.parts })
  return { ...heard, blocks, parts: heard.parts + 1 }
}
