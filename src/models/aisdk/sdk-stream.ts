// Reads the AI SDK's stream of parts into one reply, and emits deltas. aisdk.ts opens the stream.
import type {
  JSONValue,
  LanguageModelV3FinishReason,
  LanguageModelV3StreamPart,
  LanguageModelV3Usage,
  SharedV3ProviderMetadata,
} from '@ai-sdk/provider'
import type { Json, Part, Usage } from '../../kernel/content.ts'
import type { Delta, ModelFailure, Reply, ReplyCall } from '../../ports/model.ts'
import { failureFromStream } from './sdk-failure.ts'
import { markedPart, type ProviderToolData, providerToolPart as servedPart } from './sdk-metadata.ts'
import type { SdkOrigin } from './sdk-settings.ts'
import { failure } from '../http/failures.ts'
import { madePicture } from '../protocols/media.ts'
import { isObject, parseJson } from '../../view/untrusted-json.ts'
import { sourcesIn } from '../../view/cited-sources.ts'

/** One part or call of the reply, in the order of their start. */
type ReplySlot = {
  readonly type: 'text' | 'reasoning' | 'call' | 'provider' | 'file'
  readonly id: string
  readonly tool: string
  text: string
  metadata: SharedV3ProviderMetadata | null
  /** Its end has arrived. A call is run only then. */
  whole: boolean
  /** No deltas are emitted: the provider runs it itself, or its partial input is not JSON. */
  readonly silent: boolean
  /** The call of a provider's own tool, or its result. */
  readonly served?: ProviderToolData
}

type SdkFinish = LanguageModelV3FinishReason['unified']
type FinishPart = Extract<LanguageModelV3StreamPart, { type: 'finish' }>
type ToolStartPart = Extract<LanguageModelV3StreamPart, { type: 'tool-input-start' }>
type ToolResultPart = Extract<LanguageModelV3StreamPart, { type: 'tool-result' }>
type ToolCallPart = Extract<LanguageModelV3StreamPart, { type: 'tool-call' }>

export class SdkReplyReader {
  readonly #origin: SdkOrigin
  readonly #emit: (delta: Delta) => void
  readonly #slots: ReplySlot[] = []
  /** Calls that the provider runs itself get no result from us. */
  readonly #foreign = new Set<string>()
  readonly #cited: Json[] = []
  #finish: FinishPart | null = null
  #failure: ModelFailure | null = null
  /** The provider has accepted the request, and its answer has begun. */
  #begun = false
  /** A delta was emitted, or a call was begun. */
  #spoke = false
  #resolve: () => void = () => {}
  /** Resolves when the provider's own end has arrived. */
  readonly over = new Promise<void>((resolve) => {
    this.#resolve = resolve
  })

  constructor(origin: SdkOrigin, emit: (delta: Delta) => void) {
    this.#origin = origin
    this.#emit = emit
  }

  begin(): void {
    this.#begun = true
  }

  hear(part: LanguageModelV3StreamPart): void {
    switch (part.type) {
      case 'text-start':
      case 'reasoning-start':
        this.#open(part.type === 'text-start' ? 'text' : 'reasoning', part.id, '', false, part.providerMetadata)
        return
      case 'text-delta':
        return this.#grow('text', part.id, part.delta, part.providerMetadata)
      case 'reasoning-delta':
        return this.#grow('reasoning', part.id, part.delta, part.providerMetadata)
      case 'text-end':
      case 'reasoning-end':
        return this.#end(part.type === 'text-end' ? 'text' : 'reasoning', part.id, part.providerMetadata)
      case 'tool-input-start':
        return this.#begin(part)
      case 'tool-input-delta':
        return this.#grow('call', part.id, part.delta, part.providerMetadata)
      case 'tool-call':
        return this.#call(part)
      case 'tool-result':
        return this.#given(part)
      case 'source':
        if (part.sourceType === 'url') this.#cited.push({ url: part.url, title: part.title ?? null })
        return
      case 'file':
        return this.#file(part.mediaType, part.data, part.providerMetadata)
      case 'finish':
        this.#finish = part
        this.#resolve()
        return
      case 'error':
        this.#failure ??= failureFromStream(part.error)
        return
      default:
        return
    }
  }

  result(): Reply | ModelFailure {
    const finish = this.#finish
    if (this.#failure) return this.broken(this.#failure)
    if (finish === null || isCut(finish.finishReason)) {
      return this.broken(failure('network', 'The stream ended before the reply was complete.'))
    }
    const { unified } = finish.finishReason
    if (!CUT.has(unified) && this.#slots.some((slot) => slot.type === 'call' && !slot.whole)) {
      return this.broken(failure('network', 'The stream was damaged: a call in it has no end.'))
    }
    const { parts, calls } = this.#said(unified !== 'content-filter')
    const cost = costOf(finish)
    const plain = { type: 'reply', parts, calls, usage: usageOf(finish.usage) } as const
    const reply = { ...plain, finish: finishOf(unified, calls) }
    return cost === null ? reply : { ...reply, cost }
  }

  /** The failure of a reply that broke off. It has the text so far if anything was shown, a call included. */
  broken(why: ModelFailure): ModelFailure {
    const partial = this.#slots.flatMap((slot) => (slot.type === 'text' ? [slot.text] : [])).join('')
    if (this.#spoke || this.#slots.some(({ type }) => type === 'call')) return { ...why, partial }
    return this.#begun && why.class === 'network' ? { ...why, broken: true } : why
  }

  #begin({ id, toolName, providerExecuted, inputEncoding, providerMetadata }: ToolStartPart): void {
    this.#spoke = true
    if (providerExecuted) this.#foreign.add(id)
    else if (!this.#find('call', id)) this.#open('call', id, toolName, inputEncoding === 'text', providerMetadata)
  }

  #call({ toolCallId, toolName, input, providerExecuted, providerMetadata }: ToolCallPart): void {
    if (providerExecuted || this.#foreign.has(toolCallId)) {
      const value = (parseJson(input) ?? {}) as JSONValue
      return this.#keep({ of: 'input', call: toolCallId, tool: toolName, value, metadata: providerMetadata ?? null })
    }
    const slot = this.#find('call', toolCallId) ?? this.#open('call', toolCallId, toolName, false, providerMetadata)
    if (slot.text === '' || slot.silent) this.#say('arguments', slot, input)
    slot.text = input
    slot.whole = true
    slot.metadata = providerMetadata ?? slot.metadata
  }

  /** Only tools of the provider return results here. */
  #given({ toolCallId: call, toolName: tool, result, isError, preliminary, providerMetadata }: ToolResultPart): void {
    if (preliminary) return
    const of = isError ? 'error' : 'result'
    this.#keep({ of, call, tool, value: result, metadata: providerMetadata ?? null })
  }

  #keep(served: ProviderToolData): void {
    const slot = { type: 'provider', id: served.call, tool: served.tool, text: '', metadata: null } as const
    this.#slots.push({ ...slot, whole: true, silent: true, served: asJson(served) })
  }

  /** A picture that the model made. Specification v4 tags its data. */
  #file(media: string, given: unknown, metadata: SharedV3ProviderMetadata | undefined): void {
    const bare = !isObject(given) || given instanceof Uint8Array
    const tagged: unknown = bare ? given : (given['data'] ?? given['url'])
    const bytes = tagged instanceof Uint8Array ? Buffer.from(tagged).toString('base64') : String(tagged)
    const slot = this.#open('file', media, '', true, metadata)
    slot.text = bytes
    slot.whole = true
  }

  #grow(
    type: Exclude<ReplySlot['type'], 'file' | 'provider'>,
    id: string,
    delta: string,
    metadata: SharedV3ProviderMetadata | undefined,
  ): void {
    const found = this.#find(type, id)
    if (!found && type === 'call') return
    const slot = found ?? this.#open(type, id, '', false, undefined)
    slot.metadata = metadata ?? slot.metadata
    slot.text += delta
    if (!slot.silent) this.#say(type === 'call' ? 'arguments' : type, slot, delta)
  }

  #end(type: ReplySlot['type'], id: string, metadata: SharedV3ProviderMetadata | undefined): void {
    const slot = this.#find(type, id)
    if (!slot) return
    slot.metadata = metadata ?? slot.metadata
    slot.whole = true
  }

  /** Ids are used again after a part has ended. */
  #find(type: ReplySlot['type'], id: string): ReplySlot | undefined {
    return this.#slots.findLast((slot) => slot.type === type && slot.id === id && !slot.whole)
  }

  #open(
    type: ReplySlot['type'],
    id: string,
    tool: string,
    silent: boolean,
    metadata: SharedV3ProviderMetadata | undefined,
  ): ReplySlot {
    const slot = { type, id, tool, text: '', metadata: metadata ?? null, whole: false, silent }
    this.#slots.push(slot)
    return slot
  }

  #say(kind: Delta['kind'], slot: ReplySlot, text: string): void {
    if (text === '') return
    this.#spoke = true
    const part = this.#slots.indexOf(slot)
    if (kind !== 'arguments') return this.#emit({ kind, part, text })
    const index = this.#slots.slice(0, part).filter(({ type }) => type === 'call').length
    this.#emit({ kind, part, text, proposed: { tool: slot.tool, index } })
  }

  /**
   * A call that was cut off keeps its partial arguments, which are not JSON; empty arguments would count as complete.
   */
  #said(calling: boolean): { readonly parts: readonly Part[]; readonly calls: readonly ReplyCall[] } {
    const parts: Part[] = []
    const calls: ReplyCall[] = []
    for (const { type, id, tool, text, metadata, whole, served } of this.#slots) {
      if (type === 'provider') {
        if (served) parts.push(servedPart(this.#origin, calls.length, served))
        continue
      }
      if (type === 'call' && (!calling || (!whole && text === ''))) continue
      const kept = metadata === null || Object.keys(metadata).length === 0 ? null : asJson(metadata)
      const mark = { of: type, at: calls.length, metadata: kept } as const
      if (type === 'file') {
        if (kept !== null) parts.push(markedPart(this.#origin, mark))
        parts.push(madePicture(text, id) ?? { type: 'data', media: id, data: text })
        continue
      }
      if (type === 'reasoning') {
        if (kept !== null || text !== '') parts.push(markedPart(this.#origin, mark, text))
        continue
      }
      if (type === 'text' && text === '') continue
      // A text after calls is marked, so that it goes back to its place.
      if (kept !== null || (type === 'text' && calls.length > 0)) parts.push(markedPart(this.#origin, mark))
      if (type === 'text') parts.push({ type: 'text', text })
      else calls.push({ id, tool, args: text })
    }
    parts.push(...sourcesIn(this.#cited))
    return { parts, calls }
  }
}

/** Packages that end every stream with a finish give these reasons if the provider itself sent none. */
function isCut({ unified, raw }: LanguageModelV3FinishReason): boolean {
  // This value exists only in specification v4.
  if ((unified as string) === 'interrupted') return true
  return unified === 'error' || (unified === 'other' && raw === undefined)
}

/** The provider itself stopped, so an open part may have no end event. */
const CUT: ReadonlySet<SdkFinish> = new Set(['length', 'content-filter'])

function finishOf(unified: SdkFinish, calls: readonly ReplyCall[]): Reply['finish'] {
  if (unified === 'length') return 'length'
  if (unified === 'content-filter') return 'refusal'
  return calls.length > 0 ? 'calls' : 'stop'
}

function usageOf({ inputTokens: input, outputTokens: output, raw }: LanguageModelV3Usage): Usage | null {
  const ran = isObject(raw) ? raw['server_tool_use'] : null
  const optional = {
    cachedTokens: input.cacheRead,
    cacheWriteTokens: input.cacheWrite,
    reasoningTokens: output.reasoning,
    webSearches:
      isObject(ran) && typeof ran['web_search_requests'] === 'number' ? ran['web_search_requests'] : undefined,
  }
  const details = Object.entries(optional).filter(([, count]) => count !== undefined && count !== 0)
  const counts = [input.total, output.total, ...details.map(([, count]) => count)]
  if (!counts.every(isCount)) return null
  return { inputTokens: input.total ?? 0, outputTokens: output.total ?? 0, ...Object.fromEntries(details) }
}

function isCount(count: number | undefined): boolean {
  return Number.isInteger(count) && Number(count) >= 0
}

/** The cost that a provider reports, in millionths of a dollar. Providers report it in dollars. */
function costOf({ usage, providerMetadata = {} }: FinishPart): number | null {
  const told = [usage.raw, ...Object.values(providerMetadata).map((of) => of['usage'])]
  const cost = told.map((each) => (isObject(each) ? each['cost'] : undefined)).find((each) => typeof each === 'number')
  return typeof cost === 'number' && cost > 0 && Number.isFinite(cost) ? Math.ceil(cost * 1_000_000) : null
}

/** A copy: the provider may change its object later. */
function asJson<T extends object>(given: T): T {
  return JSON.parse(JSON.stringify(given)) as T
}
