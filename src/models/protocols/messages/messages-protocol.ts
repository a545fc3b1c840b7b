// The Messages protocol of Anthropic, and the reader of its stream, one step per event. encode-messages.ts writes
// requests; messages-reply.ts has the state and the reply. The tests cite the published rules. No I/O and no keys.
import type { Json } from '../../../kernel/content.ts'
import { failure, failureFromTrouble } from '../../http/failures.ts'
import type { Protocol, ModelTarget, WireEvent } from '../protocol.ts'
import { encodeMessages } from './encode-messages.ts'
import {
  addCounts,
  isCompaction,
  isReplayedBlock,
  emptyMessage,
  replyOf,
  type MessageBlock,
  type StreamedMessage,
} from './messages-reply.ts'
import { isObject, asList, parseJson, asString } from '../../../view/untrusted-json.ts'
import type { Delta } from '../../../ports/model.ts'

export const messagesProtocol: Protocol<MessagesState> = {
  name: 'messages',
  encode: encodeMessages,
  begin: (target) => ({ heard: beginMessage(target), text: '' }),
  step,
  over: ({ heard }) => heard.ended || heard.failed !== null,
  finish: (state) => replyOf(settleText(state)),
  whole(body, target) {
    const data = parseJson(body)
    if (!isObject(data)) return failure('network', 'The answer is not JSON.')
    if (isObject(data.error)) return failureInEvent(data)
    if (!Array.isArray(data.content)) return failure('network', 'The answer is not a message.')
    const heard = addWholeBlocks(beginMessage(target), data.content as readonly Json[])
    if (heard === null) return failure('network', 'The answer is damaged: one of its blocks cannot be read.')
    const stop = typeof data.stop_reason === 'string' ? data.stop_reason : null
    return replyOf({ ...heard, stop, ended: true, counts: addCounts(heard.counts, data.usage) })
  },
}

/** A paused turn continues from the blocks that it had. */
function beginMessage(target: ModelTarget): StreamedMessage {
  const heard = emptyMessage(target)
  return target.paused === undefined ? heard : (addWholeBlocks(heard, target.paused) ?? heard)
}

/** Adds these blocks, each of them whole. Null if one is invalid. */
function addWholeBlocks(heard: StreamedMessage, content: readonly Json[]): StreamedMessage | null {
  let now: StreamedMessage = heard
  for (const block of content) {
    // An index that the stream does not use: its own blocks count from 0.
    const next = addBlock(now, -1 - now.blocks.length, block)
    if (next === null) return null
    now = next
  }
  return { ...now, blocks: now.blocks.map((block) => ({ ...block, open: false })), now: -1 }
}

// A text delta makes one small object; the list of blocks is copied only when a block begins, ends or is resumed.

/** `text` is the text so far of the block that is being streamed. */
export type MessagesState = { readonly heard: StreamedMessage; readonly text: string }
type MessagesStep = readonly [MessagesState, readonly Delta[]]
type WireData = Readonly<Record<string, Json>>

const QUIET: readonly Delta[] = []

function step(state: MessagesState, event: WireEvent): MessagesStep {
  const { heard } = state
  if (heard.ended || heard.failed !== null) return [state, QUIET]
  const data = parseJson(event.data)
  if (data === undefined) return event.data === '' || event.data === '[DONE]' ? [state, QUIET] : breakStream(state)
  if (!isObject(data)) return [state, QUIET]
  switch (typeof data.type === 'string' ? data.type : event.event) {
    case 'content_block_delta':
      return isObject(data.delta) ? takeDelta(state, data.index, data.delta) : breakStream(state)
    case 'content_block_start':
      return startBlock(state, data)
    case 'content_block_stop':
      return stopBlock(state, data.index)
    case 'message_start':
      return isObject(data.message) ? startMessage(state, data.message) : [state, QUIET]
    case 'message_delta': {
      const reason = isObject(data.delta) ? data.delta.stop_reason : null
      const counts = addCounts(heard.counts, data.usage)
      return [{ ...state, heard: { ...heard, counts, stop: typeof reason === 'string' ? reason : heard.stop } }, QUIET]
    }
    case 'message_stop':
      return [{ ...state, heard: { ...heard, ended: true } }, QUIET]
    case 'error':
      return [{ ...state, heard: { ...heard, failed: failureInEvent(data) } }, QUIET]
    default:
      return [state, QUIET]
  }
}

/** The start of the message, which may already have blocks: calls made by code that the provider ran. */
function startMessage(state: MessagesState, { id, usage, content, stop_reason: reason }: WireData): MessagesStep {
  const { heard } = state
  const name = typeof id === 'string' ? id : ''
  if (heard.message !== null) return heard.message === name ? [state, QUIET] : breakStream(state, SECOND)
  const full = addWholeBlocks(heard, asList(content))
  if (full === null) return breakStream(state)
  const stop = typeof reason === 'string' ? reason : heard.stop
  const deltas = full.blocks.slice(heard.blocks.length).flatMap((block) => firstDelta(block))
  return [{ ...state, heard: { ...full, message: name, stop, counts: addCounts(heard.counts, usage) } }, deltas]
}

const SECOND = 'The stream was damaged: a second message began in it.'

/** The delta for the text with which a block began; none for most blocks. */
function firstDelta({ type, text, part }: MessageBlock): readonly Delta[] {
  return text === '' ? QUIET : [{ kind: type === 'text' ? 'text' : 'reasoning', part, text }]
}

/** All blocks with all of their text. */
function settleText({ heard, text }: MessagesState): StreamedMessage {
  const { blocks, now } = heard
  const said = blocks[now]
  return said === undefined ? heard : { ...heard, blocks: blocks.with(now, { ...said, text }), now: -1 }
}

function failureInEvent(data: WireData): ReturnType<typeof failureFromTrouble> {
  const { type, message } = isObject(data.error) ? data.error : { type: null, message: data.error }
  const code = typeof type === 'string' ? type : 'api_error'
  return failureFromTrouble({
    code,
    message: typeof message === 'string' ? message : 'The provider did not say what went wrong.',
  })
}

/** Adds a block and its position. A known index is not added again. Null if the block is invalid. */
function addBlock(heard: StreamedMessage, index: Json | undefined, given: Json | undefined): StreamedMessage | null {
  if (typeof index !== 'number' || !isObject(given)) return null
  if (heard.blocks.some((block) => block.index === index || isSameCall(block, given))) return heard
  const type = typeOf(given)
  if (type === 'call' && typeof given.name !== 'string') return null
  if ((type !== 'other' || isReplayedBlock(given)) && !isWritable(given)) return null
  const said = type === 'text' ? given.text : type === 'thinking' ? given.thinking : ''
  const signature = typeof given.signature === 'string' ? given.signature : ''
  const text = typeof said === 'string' ? said : ''
  const counts = type === 'call' || type === 'redacted' || text !== '' || signature !== ''
  const part = counts && type !== 'other' ? heard.parts : -1
  const block: MessageBlock = { index, type, text, signature, open: true, part, at: heard.calls, given }
  return {
    ...heard,
    blocks: [...heard.blocks, block],
    now: heard.blocks.length,
    parts: heard.parts + (part === -1 ? 0 : 1),
    calls: heard.calls + (type === 'call' ? 1 : 0),
  }
}

/** Whether this call was already in the start of the message. */
function isSameCall({ index, type, given }: MessageBlock, { type: kind, id }: WireData): boolean {
  return index < 0 && type === 'call' && kind === 'tool_use' && id === given.id
}

const TYPES: ReadonlyMap<Json | undefined, MessageBlock['type']> = new Map([
  ['text', 'text'],
  ['thinking', 'thinking'],
  ['redacted_thinking', 'redacted'],
  ['tool_use', 'call'],
])

function typeOf(given: WireData): MessageBlock['type'] {
  return TYPES.get(given.type) ?? 'other'
}

/** JSON nested too deeply to serialise can be neither stored nor sent back. */
function isWritable(given: WireData): boolean {
  try {
    return JSON.stringify(given) !== ''
  } catch {
    return false
  }
}

function breakStream(
  state: MessagesState,
  why = 'The stream was damaged: one of its events cannot be read.',
): MessagesStep {
  return [{ ...state, heard: { ...state.heard, broken: state.heard.broken ?? why } }, QUIET]
}

function startBlock(state: MessagesState, data: WireData): MessagesStep {
  const before = settleText(state)
  const heard = addBlock(before, data.index, data.content_block)
  if (heard === null) return breakStream(state)
  // The index is known: the block that is being streamed goes on.
  if (heard === before) return [state, QUIET]
  const block = heard.blocks[heard.now] as MessageBlock
  return [{ heard, text: block.text }, firstDelta(block)]
}

function stopBlock(state: MessagesState, index: Json | undefined): MessagesStep {
  const heard = settleText(state)
  const at = heard.blocks.findIndex((block) => block.index === index && block.open)
  if (at === -1) return [state, QUIET]
  const blocks = heard.blocks.with(at, { ...(heard.blocks[at] as MessageBlock), open: false })
  return [{ heard: { ...heard, blocks }, text: '' }, QUIET]
}

function takeDelta(state: MessagesState, index: Json | undefined, piece: WireData): MessagesStep {
  const { type, text, thinking, partial_json, signature, citation } = piece
  const here = turnToBlock(state, index)
  // The block was never started, or has ended.
  if (here === null) return [state, QUIET]
  switch (type) {
    case 'text_delta':
      return addText(here, 'text', 'text', text)
    case 'thinking_delta':
      return addText(here, 'thinking', 'reasoning', thinking)
    case 'input_json_delta':
      return addText(here, 'call', 'arguments', partial_json)
    case 'signature_delta':
      return addSignature(here, signature)
    case 'citations_delta':
      return addCitation(here, citation)
    case 'compaction_delta':
      return addCompaction(here, piece)
    default:
      return [state, QUIET]
  }
}

/** The state in which the block with this index is the one being streamed. */
function turnToBlock(state: MessagesState, index: Json | undefined): MessagesState | null {
  const { blocks, now } = state.heard
  const block = blocks[now]
  if (block !== undefined && block.index === index) return state
  const found = blocks.findIndex((other) => other.index === index && other.open)
  if (found === -1) return null
  return { heard: { ...settleText(state), now: found }, text: (blocks[found] as MessageBlock).text }
}

function addText(
  state: MessagesState,
  type: MessageBlock['type'],
  kind: Delta['kind'],
  text: Json | undefined,
): MessagesStep {
  const { heard } = state
  const block = heard.blocks[heard.now] as MessageBlock
  if (typeof text !== 'string') return breakStream(state)
  // The input of a tool that the provider runs: needed if the turn is paused.
  if (block.type === 'other' && type === 'call') return [{ heard, text: state.text + text }, QUIET]
  if (block.type !== type || text === '') return [state, QUIET]
  const proposed = type === 'call' ? { proposed: { tool: asString(block.given.name), index: block.at } } : undefined
  if (block.part !== -1) {
    return [{ heard, text: state.text + text }, [{ kind, part: block.part, text, ...proposed }]]
  }
  return [
    { heard: placeBlock(heard, block), text: state.text + text },
    [{ kind, part: heard.parts, text, ...proposed }],
  ]
}

function addSignature(state: MessagesState, signature: Json | undefined): MessagesStep {
  const { heard, text } = state
  const block = heard.blocks[heard.now] as MessageBlock
  if (typeof signature !== 'string') return breakStream(state)
  if (block.type !== 'thinking' || signature === '') return [state, QUIET]
  const signed = { ...block, signature }
  if (block.part === -1) return [{ heard: placeBlock(heard, signed), text }, QUIET]
  return [{ heard: { ...heard, blocks: heard.blocks.with(heard.now, signed) }, text }, QUIET]
}

/** The block itself, which is sent back, and the sources of the reply both use the citation. */
function addCitation({ heard, text }: MessagesState, citation: Json | undefined): MessagesStep {
  const block = heard.blocks[heard.now] as MessageBlock
  if (block.type !== 'text' || !isObject(citation)) return [{ heard, text }, QUIET]
  const given = { ...block.given, citations: [...asList(block.given.citations), citation] }
  return [{ heard: { ...heard, blocks: heard.blocks.with(heard.now, { ...block, given }) }, text }, QUIET]
}

/** Adds all fields of the piece, known or not: the block goes back as the provider made it. */
function addCompaction({ heard, text }: MessagesState, { type: _, content, ...fields }: WireData): MessagesStep {
  const block = heard.blocks[heard.now] as MessageBlock
  if (!isCompaction(block.given) || !isWritable(fields)) return [{ heard, text }, QUIET]
  const before = block.given.content
  const summary = typeof before === 'string' && typeof content === 'string' ? before + content : (content ?? before)
  const given = { ...block.given, ...fields, ...(summary === undefined ? {} : { content: summary }) }
  return [{ heard: { ...heard, blocks: heard.blocks.with(heard.now, { ...block, given }) }, text }, QUIET]
}

/** A block gets its position with its first content; an empty block gets none. */
function placeBlock(heard: StreamedMessage, block: MessageBlock): StreamedMessage {
  const blocks = heard.blocks.with(heard.now, { ...block, part: heard.parts })
  return { ...heard, blocks, parts: heard.parts + 1 }
}
